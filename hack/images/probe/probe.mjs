/**
 * A tool that looks around and misbehaves on request: an MCP server on stdio without any dependency, so that what a test
 * sees is the sandbox and the operator, not a library. The functions are in functions.mjs.
 */
import { createInterface } from 'node:readline';
import { functions, listing } from './functions.mjs';

const versions = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'];
const running = new Map();

const send = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
const notify = (method, params = {}) => send({ method, params });

const methods = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion: versions.includes(protocolVersion) ? protocolVersion : versions[0],
    capabilities: { tools: { listChanged: true } },
    serverInfo: { name: 'probe', version: '1.0.0' },
  }),
  ping: () => ({}),
  'tools/list': () => ({ tools: listing() }),
  'tools/call': call,
};

async function call({ name, arguments: args = {}, _meta: meta = {} }, signal) {
  const run = Object.hasOwn(functions, name) ? functions[name].run : undefined;
  if (run === undefined) throw Object.assign(new Error(`unknown tool: ${name}`), { code: -32602 });
  const { progressToken } = meta;
  const progress = (done, total) =>
    progressToken === undefined || notify('notifications/progress', { progressToken, progress: done, total });
  try {
    const value = await run(args, { signal, progress, notify });
    const text = typeof value === 'string' ? value : JSON.stringify(value);
    return { content: [{ type: 'text', text }], isError: false };
  } catch (error) {
    return { content: [{ type: 'text', text: `${error.code ?? error.name}: ${error.message}` }], isError: true };
  }
}

async function handle(message) {
  if (message.method === 'notifications/cancelled') {
    running.get(message.params?.requestId)?.abort();
    return;
  }
  if (message.id === undefined || message.method === undefined) return;
  const cancel = new AbortController();
  running.set(message.id, cancel);
  try {
    const method = Object.hasOwn(methods, message.method) ? methods[message.method] : undefined;
    if (method === undefined) throw Object.assign(new Error(`unknown method: ${message.method}`), { code: -32601 });
    const result = await method(message.params ?? {}, cancel.signal);
    if (!cancel.signal.aborted) send({ id: message.id, result });
  } catch (error) {
    send({ id: message.id, error: { code: error.code ?? -32603, message: error.message } });
  } finally {
    running.delete(message.id);
  }
}

createInterface({ input: process.stdin })
  .on('line', (line) => {
    try {
      void handle(JSON.parse(line));
    } catch {
      send({ id: null, error: { code: -32700, message: 'not JSON' } });
    }
  })
  .on('close', () => process.exit(0));
