/**
 * Two fuzzers with a printed seed (`FUZZ_SEED` runs one again) and a bounded time. (a) What our reader takes writes out again as
 * the same bytes. (b) What reaches a host, read by Node's parser, is what a second reader, written apart from ours and after
 * RFC 9112 alone, finds in the bytes that the tool sent: as many requests, the same method, target, headers and body.
 */
import { describe, expect, test } from 'vitest';
import { parseRequestHead, writeRequestHead } from '../../../src/domain/credential/requestHead.ts';
import { HOST, openInner, startWorld } from './support/world.ts';

const SEED = Number(process.env['FUZZ_SEED'] ?? Date.now() % 2 ** 31);
const CANONICAL_MS = 2_000;
const DIFFERENTIAL_MS = 5_000;

/** mulberry32. */
function randomOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

const pickOf =
  (random: () => number) =>
  <T>(values: readonly [T, ...T[]]): T =>
    values[Math.floor(random() * values.length)] ?? values[0];

const LINES = [
  `Host: ${HOST}`,
  'Content-Length: 3',
  'Content-Length: 0',
  'Content-Length: 03',
  'content-length: 5',
  'Transfer-Encoding: chunked',
  'Transfer-Encoding: gzip, chunked',
  'Transfer-Encoding : chunked',
  'Transfer_Encoding: chunked',
  'Connection: keep-alive',
  'Connection: close',
  'X-A: 1',
  'X-A:1',
  'X-B:  2 ',
  'X-C: \xe9\xff',
  ' folded',
  'Expect: x',
  '__proto__: y',
  'X: ',
] as const;
const BODIES = [
  '',
  'abc',
  '3\r\nabc\r\n0\r\n\r\n',
  '3;x\r\nabc\r\n0\r\n\r\n',
  '0\r\n\r\n',
  '3\r\nabc\r\n0\r\nX: y\r\n\r\n',
  'GET /s HTTP/1.1\r\nHost: x\r\n\r\n',
] as const;
const ENDS = ['\r\n', '\r\n', '\r\n', '\r\n', '\r\n', '\r\n', '\n', '\r', '\r\n\r\n'] as const;
const STARTS = [
  'GET / HTTP/1.1',
  'POST /p HTTP/1.1',
  'POST /p HTTP/1.1',
  'PUT /%2e%2e/x?y HTTP/1.1',
  'HEAD / HTTP/1.1',
  'POST  / HTTP/1.1',
  'GET / HTTP/1.0',
  'get / HTTP/1.1',
  `GET http://${HOST}/ HTTP/1.1`,
] as const;
const BYTES = ['\0', '\r', '\n', '\t', ' ', ':', ';', '\x0b', '\x80', '0', 'x', ',', '\r\n'] as const;

function requestBytes(random: () => number): string {
  const pick = pickOf(random);
  const end = (): string => (random() < 0.9 ? '\r\n' : pick(ENDS));
  const lines = [LINES[0], ...Array.from({ length: Math.floor(random() * 4) }, () => pick(LINES))];
  if (random() < 0.1) lines.shift();
  const start = random() < 0.7 ? pick(['GET /g HTTP/1.1', 'POST /p HTTP/1.1', 'POST /q?x HTTP/1.1']) : pick(STARTS);
  let body: string = pick(BODIES);
  // Half of them are meant to fit together, or nothing would be accepted.
  if (random() < 0.5 && start.startsWith('POST')) {
    const chunked = random() < 0.5;
    lines.push(chunked ? 'Transfer-Encoding: chunked' : 'Content-Length: 3');
    body = chunked ? '3\r\nabc\r\n0\r\n\r\n' : 'abc';
  } else if (random() < 0.5) body = '';
  let text = `${start}${end()}${lines.map((line) => line + end()).join('')}${end()}${body}`;
  for (let mutations = random() < 0.3 ? 1 + Math.floor(random() * 3) : 0; mutations > 0; mutations--) {
    const at = Math.floor(random() * text.length);
    text = text.slice(0, at) + pick(BYTES) + text.slice(at + (random() < 0.5 ? 1 : 0));
  }
  return text;
}

interface Read {
  readonly method: string;
  readonly target: string;
  readonly fields: readonly string[];
  readonly body: string;
}

/** RFC 9112 and nothing lenient of it: requests up to the first that is none. */
function readStrictly(text: string): Read[] {
  const found: Read[] = [];
  for (let rest = text; ; ) {
    const head =
      /^([!#$%&'*+.^_`|~0-9A-Za-z-]+) (\S+) HTTP\/1\.1\r\n((?:[!#$%&'*+.^_`|~0-9A-Za-z-]+:[^\r\n\0]*\r\n)*)\r\n/.exec(
        rest,
      );
    if (head === null) return found;
    const [whole, method = '', target = '', lines = ''] = head;
    const fields = lines
      .split('\r\n')
      .slice(0, -1)
      .map((line) => {
        const colon = line.indexOf(':');
        return [line.slice(0, colon), line.slice(colon + 1).replace(/^[ \t]+|[ \t]+$/g, '')] as const;
      });
    const all = (name: string): string[] =>
      fields.filter(([each]) => each.toLowerCase() === name).map(([, value]) => value);
    rest = rest.slice(whole.length);
    const [lengths, codings] = [all('content-length'), all('transfer-encoding')];
    let body = '';
    if (codings.length > 0) {
      if (codings.join().toLowerCase() !== 'chunked' || lengths.length > 0) return found;
      for (;;) {
        const [line, size = ''] = /^([0-9A-Fa-f]+)\r\n/.exec(rest) ?? [];
        if (line === undefined) return found;
        const bytes = Number.parseInt(size, 16);
        rest = rest.slice(line.length);
        if (bytes === 0) break;
        body += rest.slice(0, bytes);
        if (rest.slice(bytes, bytes + 2) !== '\r\n') return found;
        rest = rest.slice(bytes + 2);
      }
      if (!rest.startsWith('\r\n')) return found;
      rest = rest.slice(2);
    } else if (lengths.length > 0) {
      if (lengths.length > 1 || !/^[0-9]+$/.test(lengths[0] ?? '')) return found;
      body = rest.slice(0, Number(lengths[0]));
      if (body.length < Number(lengths[0])) return found;
      rest = rest.slice(body.length);
    }
    found.push({ method, target, fields: fields.map(([name, value]) => `${name}: ${value}`), body });
  }
}

/** What is written anew on the way, and so not compared. */
const REWRITTEN =
  /^(?:connection|content-length|transfer-encoding|accept-encoding|keep-alive|te|range|if-range|host):/i;
const kept = (fields: readonly string[]): string[] => fields.filter((field) => !REWRITTEN.test(field));

describe(`fuzzers, FUZZ_SEED=${SEED}`, () => {
  test('(a) what is accepted writes out again as the same bytes', () => {
    const random = randomOf(SEED);
    const until = performance.now() + CANONICAL_MS;
    let tried = 0;
    let accepted = 0;
    while (performance.now() < until) {
      const text = requestBytes(random);
      const end = text.indexOf('\r\n\r\n');
      const bytes = Buffer.from(end < 0 ? text : text.slice(0, end + 4), 'latin1');
      tried++;
      const reading = parseRequestHead(bytes);
      if (!reading.ok) continue;
      accepted++;
      expect(writeRequestHead(reading.head).toString('latin1'), `seed ${SEED}`).toBe(bytes.toString('latin1'));
    }
    console.log(`(a) seed ${SEED}: ${tried} heads, ${accepted} accepted`);
    expect(accepted).toBeGreaterThan(tried / 100);
    expect(accepted).toBeLessThan(tried);
  });

  test('(b) what reaches the host is what a second reader finds in the bytes that were sent', async () => {
    const random = randomOf(SEED + 1);
    const world = await startWorld({
      limits: { headMs: 100, keepAliveMs: 30, requestBodyIdleMs: 30, firstByteMs: 500 },
    });
    const until = performance.now() + DIFFERENTIAL_MS;
    let tried = 0;
    let reached = 0;
    while (performance.now() < until) {
      const text = requestBytes(random) + (random() < 0.5 ? requestBytes(random) : '');
      world.seen.length = 0;
      const line = await openInner(world);
      line.socket.write(Buffer.from(text, 'latin1'));
      const answer = await line.ended;
      line.socket.destroy();
      tried++;
      reached += world.seen.length;
      const expected = readStrictly(text);
      const said = `seed ${SEED}: ${JSON.stringify(text)} → ${JSON.stringify(answer.slice(0, 300))}`;
      expect(expected.length, said).toBeGreaterThanOrEqual(world.seen.length);
      for (const [at, seen] of world.seen.entries()) {
        const { method, target, body, fields } = expected[at] ?? { method: '', target: '', body: '', fields: [] };
        const pairs = Array.from(
          { length: seen.rawHeaders.length / 2 },
          (_, i) => `${seen.rawHeaders[2 * i]}: ${seen.rawHeaders[2 * i + 1]}`,
        );
        expect([seen.method, seen.url, seen.body], said).toEqual([method, target, body]);
        expect(kept(pairs), said).toEqual(kept(fields));
      }
    }
    console.log(`(b) seed ${SEED}: ${tried} connections, ${reached} requests reached the host`);
    expect(reached).toBeGreaterThan(tried / 20);
    await world.close();
  });
});
