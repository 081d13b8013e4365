/**
 * Server-sent events: an encoder, and a decoder that takes bytes as they come (split inside a character or between CR
 * and LF), ignores what it does not know, and holds no more than one event of bounded size.
 */

/** One message as an event. JSON text holds no line break, so one data line is enough. */
export function encodeEvent(json: string): string {
  return `event: message\ndata: ${json}\n\n`;
}

/** A comment: keeps a quiet stream alive and finds out whether anyone still reads it. */
export const KEEP_ALIVE = ': keep-alive\n\n';

export interface SseDecoder {
  /** False once an event grew over the limit: the stream is then not to be read on. */
  readonly push: (chunk: Uint8Array) => boolean;
}

/** Calls `onMessage` with the data of every event of type `message` (the type where none is given). */
export function createSseDecoder(maxEventChars: number, onMessage: (data: string) => void): SseDecoder {
  // A BOM at the start is dropped by TextDecoder; broken UTF-8 becomes U+FFFD, as the standard says.
  const decoder = new TextDecoder('utf-8');
  let rest = '';
  let data: string[] = [];
  let size = 0;
  let type = '';
  let afterCr = false;
  let over = false;

  const line = (text: string): void => {
    if (text === '') {
      if (data.length > 0 && !over && (type === '' || type === 'message')) onMessage(data.join('\n'));
      data = [];
      size = 0;
      type = '';
      return;
    }
    const colon = text.indexOf(':');
    const field = colon === -1 ? text : text.slice(0, colon);
    if (field !== 'data' && field !== 'event') return;
    const value = colon === -1 ? '' : text.slice(text[colon + 1] === ' ' ? colon + 2 : colon + 1);
    if (field === 'event') type = value;
    else {
      size += value.length;
      over ||= size > maxEventChars;
      if (!over) data.push(value);
    }
  };

  return {
    push: (chunk) => {
      let text = decoder.decode(chunk, { stream: true });
      if (afterCr && text !== '') {
        if (text.startsWith('\n')) text = text.slice(1);
        afterCr = false;
      }
      // Only the new part can hold a line's end.
      let from = rest.length;
      text = rest + text;
      let start = 0;
      for (let end = nextBreak(text, from); end !== -1; end = nextBreak(text, from)) {
        line(text.slice(start, end));
        const cr = text.charCodeAt(end) === 13;
        afterCr = cr && end + 1 === text.length;
        start = end + (cr && text.charCodeAt(end + 1) === 10 ? 2 : 1);
        from = start;
      }
      rest = text.slice(start);
      over ||= size + rest.length > maxEventChars;
      return !over;
    },
  };
}

function nextBreak(text: string, from: number): number {
  const lf = text.indexOf('\n', from);
  const cr = text.indexOf('\r', from);
  if (lf === -1) return cr;
  return cr === -1 || lf < cr ? lf : cr;
}
