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

export function splitLines(maxLineBytes: number, sink: LineSink): LineSplitter {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  let parts: Buffer[] = [];
  let size = 0;
  let head: Buffer | undefined;
  let tail = Buffer.alloc(0);

  const add = (part: Buffer): void => {
    size += part.length;
    if (head === undefined && size <= maxLineBytes) {
      // Copied, so that a short rest does not keep a large chunk alive.
      parts.push(part.length < 4096 ? Buffer.from(part) : part);
      return;
    }
    if (head === undefined) {
      const all = Buffer.concat(parts);
      head = Buffer.from(
        Buffer.concat([all.subarray(0, END_BYTES), part.subarray(0, END_BYTES)]).subarray(0, END_BYTES),
      );
      tail = Buffer.from(all.subarray(-END_BYTES));
      parts = [];
    }
    tail = Buffer.from(Buffer.concat([tail, part.subarray(-END_BYTES)]).subarray(-END_BYTES));
  };

  const finish = (): void => {
    const bytes = size;
    if (head !== undefined) {
      const ends = [head.toString('latin1'), tail.toString('latin1')] as const;
      reset();
      sink.oversize(ends[0], ends[1], bytes);
      return;
    }
    const [first] = parts;
    let whole = parts.length === 1 && first !== undefined ? first : Buffer.concat(parts);
    reset();
    if (whole.at(-1) === RETURN) whole = whole.subarray(0, -1);
    let text: string;
    try {
      text = decoder.decode(whole);
    } catch {
      sink.broken(bytes);
      return;
    }
    sink.line(text, bytes);
  };

  const reset = (): void => {
    parts = [];
    size = 0;
    head = undefined;
    tail = Buffer.alloc(0);
  };

  return {
    push(chunk) {
      let from = 0;
      for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, from)) {
        add(chunk.subarray(from, end));
        finish();
        from = end + 1;
      }
      if (from < chunk.length) add(chunk.subarray(from));
    },
    rest: () => size,
  };
}
