/** The tool's last words: kept for its status, and sent on to our log at a bounded rate; control characters escaped. */
import { StringDecoder } from 'node:string_decoder';
import type { Log } from './log.ts';

export interface StderrTail {
  readonly push: (bytes: Buffer) => void;
  /** The last lines, newest last. */
  readonly lines: () => readonly string[];
}

const KEPT_LINES = 20;
const LONGEST_LINE = 300;
const LOGGED_PER_SECOND = 20;

export function createStderrTail(log: Log, now: () => number = Date.now): StderrTail {
  const decoder = new StringDecoder('utf8');
  const kept: string[] = [];
  let rest = '';
  let second = 0;
  let logged = 0;
  let dropped = 0;

  const line = (text: string): void => {
    if (text.trim() === '') return;
    kept.push(text);
    if (kept.length > KEPT_LINES) kept.shift();
    const at = Math.floor(now() / 1_000);
    if (at !== second) {
      if (dropped > 0) log('warn', 'the tool writes more to stderr than is logged', { dropped });
      second = at;
      logged = 0;
      dropped = 0;
    }
    if (logged < LOGGED_PER_SECOND) log('info', 'stderr', { line: text });
    else dropped++;
    logged++;
  };

  return {
    push(bytes) {
      const parts = (rest + decoder.write(bytes)).split(/\r?\n/);
      rest = (parts.pop() ?? '').slice(0, LONGEST_LINE);
      for (const part of parts) line(escapeControls(part.slice(0, LONGEST_LINE)));
    },
    lines: () => (rest === '' ? kept : [...kept, escapeControls(rest)]),
  };
}

/** A terminal's commands, and what would forge a line of a log, made visible. */
export function escapeControls(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what this is about
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g, (char) => {
    return `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`;
  });
}
