import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { createStdioClient } from './stdio.ts';
import { splitLines } from './stdioLines.ts';

function open(maxMessageBytes = 1_000) {
  const sent: { id?: number; method?: string; params?: { requestId?: number; _meta?: object } }[] = [];
  const told: string[] = [];
  let noise = 0;
  let overdue = 0;
  const client = createStdioClient({
    write: (bytes) => sent.push(JSON.parse(bytes.toString())),
    maxMessageBytes,
    onNotification: (method) => told.push(method),
    onNoise: (bytes) => {
      noise += bytes;
    },
    graceMs: 5_000,
    onOverdue: () => overdue++,
  });
  const push = (text: string) => client.push(Buffer.from(text));
  return { client, sent, told, push, noise: () => noise, overdue: () => overdue };
}
const call = { method: 'tools/call', params: { name: 'f' }, timeoutMs: 60_000 };

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

describe('stdio', () => {
  test('many callers, answers in any order, split anywhere', async () => {
    const { client, push } = open();
    const first = client.request(call);
    const second = client.request(call);
    const text = '{"jsonrpc":"2.0","id":2,"result":{"n":"zwei €"}}\r\n{"jsonrpc":"2.0","id":1,"result":{"n":1}}\n';
    for (const byte of Buffer.from(text)) client.push(Buffer.of(byte));
    push('\n');
    expect(await second).toEqual({ kind: 'result', id: 2, result: { n: 'zwei €' } });
    expect(await first).toMatchObject({ kind: 'result', result: { n: 1 } });
    expect(client.running()).toBe(0);
  });

  test('[case 26] junk, half lines, broken UTF-8 and answers to nobody are counted and harm nothing', async () => {
    const { client, push, noise } = open();
    const answer = client.request(call);
    push('Listening on stdio...\n');
    client.push(Buffer.from([0xff, 0xfe, 0x0a]));
    push('{"jsonrpc":"2.0","id":7,"result":{}}\n{"jsonrpc":"2.0","id":"1","result":{}}\n[]\n{"jsonrpc":"2.0"}\nnull\n');
    push('{"jsonrpc":"2.0","id":1,"res');
    push('ult":{"ok":true}}\n{"jsonrpc":"2.0","id":1,"result":{"ok":false}}\n{"half');
    expect(await answer).toMatchObject({ result: { ok: true } });
    client.end();
    expect(noise()).toBeGreaterThan(100);
  });

  test('[case 27] questions of the server: ping is answered, what was not declared is refused', () => {
    const { push, sent } = open();
    push('{"jsonrpc":"2.0","id":"p","method":"ping"}\n');
    for (const method of ['sampling/createMessage', 'elicitation/create', 'roots/list', 'x']) {
      push(`{"jsonrpc":"2.0","id":1,"method":"${method}","params":{}}\n`);
    }
    expect(sent[0]).toEqual({ jsonrpc: '2.0', id: 'p', result: {} });
    for (const refusal of sent.slice(1)) expect(refusal).toMatchObject({ id: 1, error: { code: -32601 } });
    expect(sent).toHaveLength(5);
  });

  test('progress reaches its own caller, and extends no deadline', async () => {
    const { client, push, sent } = open();
    const seen: unknown[] = [];
    const answer = client.request({ ...call, onProgress: (at) => seen.push(at) });
    expect(sent[0]?.params?._meta).toEqual({ progressToken: 1 });
    push('{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1,"total":2}}\n');
    push('{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":9,"progress":1}}\n');
    push('{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":"x"}}\n');
    expect(seen).toEqual([{ progress: 1, total: 2 }]);
    vi.advanceTimersByTime(60_000);
    expect(await answer).toEqual({ kind: 'unknown', reason: 'timeout' });
  });

  test('[R09] what is given up is told to the process, holds its slot, and is overdue after the grace', async () => {
    const { client, sent, overdue } = open();
    const abort = new AbortController();
    const answer = client.request({ ...call, signal: abort.signal });
    abort.abort();
    expect(await answer).toEqual({ kind: 'cancelled' });
    expect(sent[1]).toMatchObject({ method: 'notifications/cancelled', params: { requestId: 1 } });
    expect(client.running()).toBe(1);
    vi.advanceTimersByTime(4_999);
    expect(overdue()).toBe(0);
    vi.advanceTimersByTime(1);
    expect(overdue()).toBe(1);
  });

  test('[R09] what ends within the grace is not overdue', async () => {
    const { client, push, overdue } = open();
    const abort = new AbortController();
    void client.request({ ...call, signal: abort.signal });
    abort.abort();
    push('{"jsonrpc":"2.0","id":1,"error":{"code":-32800,"message":"cancelled"}}\n');
    expect(client.running()).toBe(0);
    vi.advanceTimersByTime(10_000);
    expect(overdue()).toBe(0);
  });

  test.each([
    ['at its start', `{"jsonrpc":"2.0","id":2,"result":{"x":"${'x'.repeat(5_000)}"}}`],
    ['at its end', `{"result":{"x":"${'x'.repeat(5_000)}"},"jsonrpc":"2.0","id":2}`],
    ['at its end, before the version', `{"result":{"x":"${'x'.repeat(5_000)}"},"id":2,"jsonrpc":"2.0"}`],
  ])('[case 29] an answer over the limit ends its call alone, with the id %s', async (_name, line) => {
    const { client, push } = open();
    const first = client.request(call);
    const second = client.request(call);
    for (let at = 0; at < line.length; at += 700) push(line.slice(at, at + 700));
    push('\n{"jsonrpc":"2.0","id":1,"result":{}}\n');
    expect(await second).toEqual({ kind: 'too-large' });
    expect(await first).toMatchObject({ kind: 'result' });
  });

  test('a line without end holds no more than its ends', async () => {
    const { client } = open();
    const answer = client.request(call);
    const part = Buffer.alloc(64 * 1024, 'x');
    const before = process.memoryUsage().arrayBuffers;
    for (let at = 0; at < 2_000; at++) client.push(part);
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(64 * 1024 * 1024);
    client.end();
    expect(await answer).toEqual({ kind: 'unknown', reason: 'process-ended' });
  });

  test('a line that comes byte by byte takes no more than one that comes at once', () => {
    const lines: string[] = [];
    const ignore = () => {};
    const splitter = splitLines(4_000_000, { line: (text) => lines.push(text), broken: ignore, oversize: ignore });
    const byte = Buffer.from('x');
    const before = process.memoryUsage();
    for (let at = 0; at < 1_000_000; at++) splitter.push(byte);
    const after = process.memoryUsage();
    expect(after.heapUsed + after.arrayBuffers - before.heapUsed - before.arrayBuffers).toBeLessThan(48 * 1024 * 1024);
    splitter.push(Buffer.from('y\r\nshort\n'));
    expect(lines.map((line) => [line.length, line.slice(-1)])).toEqual([
      [1_000_001, 'y'],
      [5, 't'],
    ]);
  });

  test('after its end nothing is sent, and nothing waits', async () => {
    const { client, sent } = open();
    const answer = client.request(call);
    client.end();
    expect(await answer).toEqual({ kind: 'unknown', reason: 'process-ended' });
    expect(await client.request(call)).toEqual({ kind: 'unknown', reason: 'process-ended' });
    expect(sent).toHaveLength(1);
    expect(vi.getTimerCount()).toBe(0);
  });
});
