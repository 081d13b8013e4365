/**
 * Lines out of a byte stream, as MCP over stdio frames its messages: bounded in size, split anywhere, checked to be
 * UTF-8. Of a line over the limit only the two ends are kept, for whoever must tell whose answer it was.
 */

export interface LineSink {
  /** A line without its end. */
  readonly line: (text: string, bytes: number) => void;
  /** Bytes that are not UTF-8. */
  readonly broken: (bytes: number) => void;
  /** A line over the limit; called once it ended. */
  readonly oversize: (head: string, tail: string, bytes: number) => void;
}

export interface LineSplitter {
  readonly push: (chunk: Buffer) => void;
  /** Bytes of a line that has not ended. */
  readonly rest: () => number;
}

const NEWLINE = 0x0a;
const RETURN = 0x0d;
const END_BYTES = 512;
const FIRST_BYTES = 4_096;

export function splitLines(maxLineBytes: number, sink: LineSink): LineSplitter {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  /** The line so far, copied: in parts, a line that comes byte by byte would take a hundred times its size. */
  let held = Buffer.alloc(0);
  let size = 0;
  let head: Buffer | undefined;
  let tail = Buffer.alloc(0);

  const add = (part: Buffer): void => {
    const before = size;
    size += part.length;
    if (head === undefined && size <= maxLineBytes) {
      if (size > held.length) {
        const larger = Buffer.allocUnsafeSlow(Math.min(maxLineBytes, Math.max(FIRST_BYTES, 2 * size)));
        held.copy(larger, 0, 0, before);
        held = larger;
      }
      part.copy(held, before);
      return;
    }
    if (head === undefined) {
      const all = held.subarray(0, before);
      head = Buffer.from(
        Buffer.concat([all.subarray(0, END_BYTES), part.subarray(0, END_BYTES)]).subarray(0, END_BYTES),
      );
      tail = Buffer.from(all.subarray(-END_BYTES));
      held = Buffer.alloc(0);
    }
    tail = Buffer.from(Buffer.concat([tail, part.subarray(-END_BYTES)]).subarray(-END_BYTES));
  };

  const finish = (): void => {
    const bytes = size;
    size = 0;
    if (head !== undefined) {
      const ends = [head.toString('latin1'), tail.toString('latin1')] as const;
      head = undefined;
      tail = Buffer.alloc(0);
      sink.oversize(ends[0], ends[1], bytes);
      return;
    }
    const whole = held.subarray(0, bytes);
    if (held.length > FIRST_BYTES) held = Buffer.alloc(0);
    emit(whole);
  };

  const emit = (whole: Buffer): void => {
    let text: string;
    try {
      text = decoder.decode(whole.at(-1) === RETURN ? whole.subarray(0, -1) : whole);
    } catch {
      sink.broken(whole.length);
      return;
    }
    sink.line(text, whole.length);
  };

  return {
    push(chunk) {
      let from = 0;
      for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, from)) {
        const part = chunk.subarray(from, end);
        from = end + 1;
        if (size === 0 && part.length <= maxLineBytes) {
          emit(part);
          continue;
        }
        add(part);
        finish();
      }
      if (from < chunk.length) add(chunk.subarray(from));
    },
    rest: () => size,
  };
}
