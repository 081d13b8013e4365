/**
 * The first message of a TLS client, read as far as needed to see for whom it is. Pure and bounded: whatever is not exactly
 * one ClientHello is `odd`. Decides whether a tunnel's first bytes belong to the host that was asked for.
 */
import type { ConnectTarget } from './host.ts';

export type HelloReading =
  /** As far as it goes it is one, and it goes on. */
  | { readonly kind: 'more' }
  | { readonly kind: 'not-tls' }
  /** TLS, but malformed, too long, or naming more than one server. */
  | { readonly kind: 'odd' }
  | { readonly kind: 'hello'; readonly serverName: string | undefined; readonly encrypted: boolean };

export type HelloRefusal =
  /** Port 443 is for TLS. */
  | 'tls-required'
  | 'odd-hello'
  /** It names no server, so whom the other side takes it for is unknown. */
  | 'no-server-name'
  /** It names another server than the CONNECT did. */
  | 'other-server-name'
  /** It hides a second name (ECH), which a host that serves many others would follow. */
  | 'encrypted-hello';

/** Post-quantum key shares make some 2 KiB; anything near this was made to be long. */
export const HELLO_MAX_BYTES = 16_384;

const HANDSHAKE = 22;
const CLIENT_HELLO = 1;
const EXTENSION_SERVER_NAME = 0;
const EXTENSION_ENCRYPTED_HELLO = 0xfe0d;

/** Whether a tunnel may go on after these first bytes; `more`: not yet known. */
export function decideHello(reading: HelloReading, target: ConnectTarget): 'pass' | 'more' | HelloRefusal {
  switch (reading.kind) {
    case 'more':
      return 'more';
    case 'not-tls':
      // Whoever lists another port says that something else may be spoken there.
      return target.port === 443 ? 'tls-required' : 'pass';
    case 'odd':
      return 'odd-hello';
    case 'hello':
      if (reading.encrypted) return 'encrypted-hello';
      // An address cannot be a server name (RFC 6066): with one there is nothing to compare, and with a name it differs.
      if (target.kind === 'address') return reading.serverName === undefined ? 'pass' : 'other-server-name';
      if (reading.serverName === undefined) return 'no-server-name';
      return reading.serverName.toLowerCase() === target.host ? 'pass' : 'other-server-name';
  }
}

export function readClientHello(bytes: Uint8Array): HelloReading {
  const message: number[] = [];
  let at = 0;
  while (at < bytes.length) {
    if (bytes[at] !== HANDSHAKE) return at === 0 ? { kind: 'not-tls' } : { kind: 'odd' };
    // Version 3.x; the rest of the record's version means nothing.
    if (at + 1 < bytes.length && bytes[at + 1] !== 3) return at === 0 ? { kind: 'not-tls' } : { kind: 'odd' };
    if (at + 5 > bytes.length) break;
    const length = read16(bytes, at + 3);
    if (length === 0 || length > HELLO_MAX_BYTES) return { kind: 'odd' };
    for (const byte of bytes.subarray(at + 5, at + 5 + length)) message.push(byte);
    if (message.length > 0 && message[0] !== CLIENT_HELLO) return { kind: 'odd' };
    if (message.length >= 4) {
      const whole = 4 + (((message[1] ?? 0) << 16) | ((message[2] ?? 0) << 8) | (message[3] ?? 0));
      if (whole > HELLO_MAX_BYTES) return { kind: 'odd' };
      if (message.length === whole) return readBody(Uint8Array.from(message.slice(4)));
      // Nothing may share a record with the end of it (RFC 8446, 5.1).
      if (message.length > whole) return { kind: 'odd' };
    }
    at += 5 + length;
  }
  return bytes.length > 2 * HELLO_MAX_BYTES ? { kind: 'odd' } : { kind: 'more' };
}

function readBody(body: Uint8Array): HelloReading {
  const odd: HelloReading = { kind: 'odd' };
  // Version and random, then session, cipher suites and compression methods, each after its length.
  let at = 34;
  for (const width of [1, 2, 1]) {
    const length = width === 1 ? (body[at] ?? Number.NaN) : read16(body, at);
    at += width + length;
    if (!(at <= body.length)) return odd;
  }
  // Before TLS 1.3 there may be no extensions at all.
  if (at === body.length) return { kind: 'hello', serverName: undefined, encrypted: false };
  if (at + 2 + read16(body, at) !== body.length) return odd;
  at += 2;
  let serverName: string | undefined;
  let encrypted = false;
  const seen = new Set<number>();
  while (at < body.length) {
    if (at + 4 > body.length) return odd;
    const type = read16(body, at);
    const end = at + 4 + read16(body, at + 2);
    if (end > body.length || seen.has(type)) return odd;
    seen.add(type);
    if (type === EXTENSION_ENCRYPTED_HELLO) encrypted = true;
    if (type === EXTENSION_SERVER_NAME) {
      serverName = readServerName(body.subarray(at + 4, end));
      if (serverName === undefined) return odd;
    }
    at = end;
  }
  return { kind: 'hello', serverName, encrypted };
}

/** Exactly one name, of plain characters. */
function readServerName(data: Uint8Array): string | undefined {
  const length = data.length >= 5 ? read16(data, 3) : 0;
  if (length === 0 || length > 255 || data[2] !== 0) return undefined;
  if (read16(data, 0) !== data.length - 2 || length !== data.length - 5) return undefined;
  const name = String.fromCharCode(...data.subarray(5));
  return /^[A-Za-z0-9._:-]+$/.test(name) ? name : undefined;
}

function read16(bytes: Uint8Array, at: number): number {
  return ((bytes[at] ?? Number.NaN) << 8) | (bytes[at + 1] ?? Number.NaN);
}
