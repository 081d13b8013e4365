/**
 * A server over stdio that behaves as its arguments say, and writes down what it did: `badTool.ts LOG [mode…]`. Each line of
 * the log is one event; tests assert on these, never on answers alone.
 */
import { appendFileSync, readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

const [log = '', ...modes] = process.argv.slice(2);
const is = (mode: string) => modes.includes(mode);
const note = (event: string) => appendFileSync(log, `${event}\n`);
const write = (text: string) => process.stdout.write(text);
const say = (message: object) => write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
const starts = () =>
  readFileSync(log, 'utf8')
    .split('\n')
    .filter((line) => line === 'start').length;

note('start');
note(`env ${Object.keys(process.env).sort().join(',')}`);
if (is('crash-at-start')) {
  process.stderr.write('no such configuration \u001b[31m\n');
  process.exit(3);
}
if (is('crash-twice') && starts() <= 2) process.exit(1);
if (is('exit-0')) process.exit(0);
if (is('junk')) {
  write('Server listening on stdio\n{"half": \n');
  process.stdout.write(Buffer.from([0xff, 0xfe, 0x80, 0x0a]));
  write('\n\n[]\nnull\n{"jsonrpc":"1.0","id":1,"result":{}}\n');
}
if (is('startup-noise')) setInterval(() => say({ method: 'notifications/message', params: { level: 'info' } }), 5);
if (is('ignore-sigterm')) process.on('SIGTERM', () => note('sigterm'));
if (is('slow-start')) await new Promise((resolve) => setTimeout(resolve, 500));

const tool = (name: string, more: object = {}) => ({ name, inputSchema: { type: 'object' }, ...more });
let listing = [
  ...[
    'echo',
    'slow',
    'die',
    'hang',
    'huge',
    'twice',
    'ask',
    'flood',
    'partial',
    'lie',
    'change',
    'progress',
    'deaf',
    'wrong-id',
    'abyss',
  ],
].map((name) => tool(name));
if (is('acts')) listing.push(tool('act'), tool('meta'), tool('redefine'));
if (is('broken-function')) listing.push({ name: 'broken' } as (typeof listing)[number]);
/** More levels than a reader of JSON can write again. */
const abyss = `${'['.repeat(50_000)}${']'.repeat(50_000)}`;
const waiting = new Map<unknown, () => void>();

function call(
  id: unknown,
  params: { name: string; arguments: Record<string, unknown>; _meta?: { progressToken?: unknown } },
) {
  const { name, arguments: args } = params;
  note(`call ${name}`);
  const answer = (text: unknown) => say({ id, result: { content: [{ type: 'text', text: String(text) }] } });
  switch (name) {
    case 'echo':
      return answer(args['text']);
    case 'slow': {
      const timer = setTimeout(() => answer('slow'), Number(args['ms']));
      waiting.set(id, () => clearTimeout(timer));
      return;
    }
    case 'die':
      note('acted');
      return process.exit(1);
    case 'hang':
      return;
    case 'huge':
      return answer('x'.repeat(Number(args['bytes'])));
    case 'abyss':
      write(`{"jsonrpc":"2.0","id":${id},"result":{"content":[],"structuredContent":${abyss}}}\n`);
      return;
    case 'twice':
      answer('first');
      return answer('second');
    case 'wrong-id':
      say({ id: 999_999, result: {} });
      say({ id: String(id), result: {} });
      return answer('right');
    case 'ask':
      say({ id: 'p', method: 'ping' });
      say({ id: 'e', method: 'elicitation/create', params: { message: 'your password?' } });
      say({ id: 's', method: 'sampling/createMessage', params: {} });
      waiting.set('ask', () => answer('asked'));
      return;
    case 'flood': {
      const until = Date.now() + Number(args['ms']);
      const line = `${'flood '.repeat(100)}\n`;
      const more = (): void => {
        if (Date.now() > until) answer('done');
        else if (process.stdout.write(line.repeat(200))) setImmediate(more);
        else process.stdout.once('drain', more);
      };
      return more();
    }
    case 'partial': {
      const text = JSON.stringify({ jsonrpc: '2.0', id, result: { content: [{ type: 'text', text: '€uro' }] } });
      const bytes = Buffer.from(`${text}\n`);
      for (const [at, byte] of bytes.entries()) setTimeout(() => process.stdout.write(Buffer.of(byte)), at * 2);
      return;
    }
    case 'lie':
      return say({
        id,
        error: { code: -32000, message: 'no', data: { 'ai.oz0/outcome': 'not-started', reason: 'busy', own: 1 } },
      });
    case 'change':
      listing = [...listing, tool(`new-${listing.length}`)];
      modes.push('changed');
      for (let at = 0; at < 1_000; at++) say({ method: 'notifications/tools/list_changed' });
      return answer('changed');
    case 'act':
      note(`acted ${args['id']}`);
      setTimeout(() => answer(args['id']), Number(args['ms'] ?? 0));
      return;
    case 'meta':
      return answer(JSON.stringify(params._meta ?? {}));
    case 'redefine':
      listing = listing.map((each) => (each.name === 'act' ? tool('act', { description: 'other' }) : each));
      say({ method: 'notifications/tools/list_changed' });
      return answer('redefined');
    case 'progress':
      for (const at of [1, 2, 3]) {
        say({
          method: 'notifications/progress',
          params: { progressToken: params._meta?.progressToken, progress: at, total: 3 },
        });
      }
      return answer('done');
    case 'deaf':
      // Reads nothing from now on, and does not end.
      answer('deaf');
      process.stdin.pause();
      return;
    default:
      return say({ id, error: { code: -32602, message: 'unknown' } });
  }
}

let asked = 0;
const lines = createInterface({ input: process.stdin });
lines.on('line', (line) => {
  const message = JSON.parse(line);
  if (message.method === undefined) {
    note(`answer ${message.id} ${message.error === undefined ? 'ok' : message.error.code}`);
    asked++;
    if (asked === 3) waiting.get('ask')?.();
    return;
  }
  switch (message.method) {
    case 'initialize':
      note('initialize');
      if (is('never-initialize')) return;
      if (is('modern')) return say({ id: message.id, error: { code: -32601, message: 'Method not found' } });
      return say({
        id: message.id,
        result: {
          protocolVersion: '2025-11-25',
          capabilities: { tools: {} },
          serverInfo: { name: 'bad', version: '1' },
        },
      });
    case 'server/discover':
      note('discover');
      return say({
        id: message.id,
        result: { supportedVersions: ['2026-07-28'], capabilities: {}, serverInfo: { name: 'modern', version: '2' } },
      });
    case 'tools/list': {
      note('list');
      if (is('abyss-list') || (is('abyss-relist') && is('changed'))) {
        write(`{"jsonrpc":"2.0","id":${message.id},"result":{"tools":[{"name":"a","inputSchema":${abyss}}]}}\n`);
        return;
      }
      if (is('endless-list')) return say({ id: message.id, result: { tools: [], nextCursor: 'again' } });
      if (!is('paged')) return say({ id: message.id, result: { tools: listing } });
      const from = Number(message.params?.cursor ?? 0);
      const next = from + 5 < listing.length ? { nextCursor: String(from + 5) } : {};
      return say({ id: message.id, result: { tools: listing.slice(from, from + 5), ...next } });
    }
    case 'tools/call':
      return call(message.id, message.params);
    case 'notifications/cancelled':
      note(`cancelled`);
      if (!is('stubborn')) {
        waiting.get(message.params.requestId)?.();
        say({ id: message.params.requestId, error: { code: -32800, message: 'cancelled' } });
      }
      return;
    default:
      return;
  }
});
lines.on('close', () => {
  if (!is('ignore-sigterm')) process.exit(0);
});
if (is('ignore-sigterm')) setInterval(() => {}, 1_000);
