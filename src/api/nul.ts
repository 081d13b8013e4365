/** Text for a process: arguments and environment end at a NUL, so none may hold one. */

// biome-ignore lint/suspicious/noControlCharactersInRegex: the control character is what is refused
export const NO_NUL = { pattern: /^[^\x00]*$/, patternMessage: 'holds a NUL' };

// biome-ignore lint/suspicious/noControlCharactersInRegex: the control character is what is refused
export const ABSOLUTE_PATH = { pattern: /^\/[^\x00]*$/, patternMessage: 'must be an absolute path' };
