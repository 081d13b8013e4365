/**
 * The forms in which a value can come back, or be smuggled out: as it is, base64 (at each of three offsets, both
 * alphabets), percent-encoded, hex, escaped for JSON and HTML, UTF-16; `spread.ts` finds mixtures of escapes. Reversed, encrypted, compressed inside of something
 * else, and one character at a time are not seen: that is a stated limit. Pure.
 */

/** Shorter pieces would match by chance. */
const SHORTEST_FORM = 8;

/** @param value visible ASCII. @returns distinct forms, longest first, so that the widest match is taken */
export function formsOf(value: string): readonly string[] {
  const bytes = Buffer.from(value, 'latin1');
  const percent = encodeURIComponent(value);
  const strict = percent.replace(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16)}`);
  const json = JSON.stringify(value).slice(1, -1);
  const each = (form: (code: number) => string): string => Array.from(bytes, form).join('');
  const hex = (code: number): string => code.toString(16).padStart(2, '0');
  const forms = [
    value,
    ...[0, 1, 2].flatMap((offset) => base64Core(bytes, offset)),
    percent,
    strict,
    percent.replaceAll('%2F', '/'),
    strict.replaceAll('%2F', '/'),
    percent.replaceAll('%20', '+'),
    each((code) => `%${hex(code)}`),
    bytes.toString('hex'),
    each((code) => `\\x${hex(code)}`),
    json,
    json.replaceAll('/', '\\/'),
    // What Go's and some web frameworks' encoders escape.
    json.replace(/[<>&'+=`]/g, (char) => `\\u00${hex(char.charCodeAt(0))}`),
    json.replace(/[<>&]/g, (char) => `\\u00${hex(char.charCodeAt(0))}`),
    each((code) => `\\u00${hex(code)}`),
    html(value, { "'": '&#39;', '"': '&quot;' }),
    html(value, { "'": '&#x27;', '"': '&quot;' }),
    html(value, { "'": '&#39;', '"': '&#34;' }),
    each((code) => `&#${code};`),
    each((code) => `&#x${hex(code)};`),
    each((code) => `${String.fromCharCode(code)}\0`),
  ];
  return [...new Set(forms)]
    .filter((form) => form.length >= SHORTEST_FORM)
    .sort((left, right) => right.length - left.length);
}

/**
 * The characters of a base64 text that hold bits of this value only, when `offset` bytes of something else came before. What
 * stays outside of a match are at most two bytes at either end.
 */
function base64Core(bytes: Buffer, offset: number): string[] {
  const padded = Buffer.concat([Buffer.alloc(offset), bytes]);
  const whole = padded.toString('base64').replace(/=+$/, '');
  const first = Math.ceil((offset * 8) / 6);
  const last = Math.floor((padded.length * 8) / 6);
  const core = whole.slice(first, last);
  return [core, core.replaceAll('+', '-').replaceAll('/', '_')];
}

function html(value: string, quotes: Readonly<Record<string, string>>): string {
  const entities: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', ...quotes };
  return value.replace(/[&<>'"]/g, (char) => entities[char] ?? char);
}
