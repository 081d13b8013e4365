/**
 * The little of DER that requests and certificates of ours need: writing elements, and reading them strictly. By hand,
 * since an ASN.1 library costs a sidecar several megabytes. Pure.
 */

export const TAG = {
  boolean: 0x01,
  integer: 0x02,
  bitString: 0x03,
  octetString: 0x04,
  objectIdentifier: 0x06,
  utf8String: 0x0c,
  utcTime: 0x17,
  generalizedTime: 0x18,
  sequence: 0x30,
  set: 0x31,
} as const;

/** One element: tag, shortest length, the parts one after the other. Up to 16 MiB, far above anything of ours. */
export function der(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(parts);
  return Buffer.concat([derHead(tag, content.length), content]);
}

/** What stands before the content of an element. */
export function derHead(tag: number, length: number): Buffer {
  return Buffer.from([tag, ...lengthBytes(length)]);
}

/** A dotted object identifier. */
export function objectIdentifier(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split('.').map(Number);
  const bytes = [first * 40 + second];
  for (const arc of rest) {
    const digits = [arc & 0x7f];
    for (let left = arc >> 7; left > 0; left >>= 7) digits.unshift((left & 0x7f) | 0x80);
    bytes.push(...digits);
  }
  return der(TAG.objectIdentifier, Buffer.from(bytes));
}

export interface DerElement {
  readonly tag: number;
  readonly content: Buffer;
  /** Head and content: what a signature is made over. */
  readonly whole: Buffer;
}

/**
 * The elements that fill `bytes` exactly.
 * @throws Error for a length that is not the shortest form, for bytes left over or missing, and for more than 16 elements
 */
export function readDer(bytes: Buffer): DerElement[] {
  const elements: DerElement[] = [];
  for (let at = 0; at < bytes.length; ) {
    if (elements.length === 16) throw new Error('DER: too many elements');
    const tag = bytes[at] ?? 0;
    const short = bytes[at + 1] ?? 0x80;
    const extra = short < 0x80 ? 0 : short & 0x7f;
    if (short === 0x80 || extra > 2 || at + 2 + extra > bytes.length) throw new Error('DER: bad length');
    const length = extra === 0 ? short : bytes.readUIntBE(at + 2, extra);
    const start = at + 2 + extra;
    if (extra + 1 !== lengthBytes(length).length || start + length > bytes.length) throw new Error('DER: bad length');
    elements.push({ tag, content: bytes.subarray(start, start + length), whole: bytes.subarray(at, start + length) });
    at = start + length;
  }
  return elements;
}

/** PEM of one block. */
export function toPem(label: string, bytes: Buffer): string {
  const lines = bytes.toString('base64').match(/.{1,64}/g) ?? [];
  return `-----BEGIN ${label}-----\n${lines.join('\n')}\n-----END ${label}-----\n`;
}

function lengthBytes(length: number): number[] {
  if (length < 0x80) return [length];
  if (length < 0x100) return [0x81, length];
  if (length < 0x10000) return [0x82, length >> 8, length & 0xff];
  return [0x83, length >> 16, (length >> 8) & 0xff, length & 0xff];
}
