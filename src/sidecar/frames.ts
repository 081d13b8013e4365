/** Frames between launcher and sidecar: a type of one byte, a length of four, big-endian, and the payload. */

export type FrameType = 'H' | 'S' | 'I' | 'C' | 'W' | 'O' | 'E' | 'X' | 'K' | 'T' | 'Q';

export const MAX_FRAME_BYTES = 1024 * 1024;

export function encodeFrame(type: FrameType, payload: Uint8Array = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(5);
  head.write(type, 0, 'latin1');
  head.writeUInt32BE(payload.length, 1);
  return Buffer.concat([head, payload]);
}

/**
 * Calls `onFrame` for each whole frame, whose payload is valid during the call alone.
 * @returns takes the next bytes; false: the stream breaks the protocol, and is to be closed
 */
export function decodeFrames(onFrame: (type: string, payload: Buffer) => void): (chunk: Buffer) => boolean {
  let waiting: Buffer[] = [];
  let size = 0;
  let wanted = 5;
  return (chunk) => {
    waiting.push(chunk);
    size += chunk.length;
    if (size < wanted) return true;
    let bytes = waiting.length === 1 ? chunk : Buffer.concat(waiting);
    waiting = [];
    wanted = 5;
    while (bytes.length >= 5) {
      const length = bytes.readUInt32BE(1);
      if (length > MAX_FRAME_BYTES) return false;
      wanted = 5 + length;
      if (bytes.length < wanted) break;
      onFrame(String.fromCharCode(bytes[0] ?? 0), bytes.subarray(5, wanted));
      bytes = bytes.subarray(wanted);
      wanted = 5;
    }
    size = bytes.length;
    if (size > 0) waiting.push(bytes);
    return true;
  };
}
