/**
 * Plays an agent inside the cluster: an MCP client with its pod's own ServiceAccount token. Uses the official SDKs as they
 * are, v2 (both eras) or v1, so that what works here works for any agent.
 *
 *   agent list
 *   agent call FUNCTION [JSON]
 *   agent steady FUNCTION [JSON] --seconds 30 --callers 4     one JSON line per call, for as long as asked
 *
 * Options: --client v2|v1 (v2), --era modern|legacy (modern; v1 knows the older era only), --url URL (the node's gateway),
 * --meta JSON (`_meta` of each call).
 */
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    client: { type: 'string', default: 'v2' },
    era: { type: 'string', default: 'modern' },
    url: { type: 'string', default: process.env.OZ0_GATEWAY ?? 'https://oz0-gateway.oz0-system.svc/mcp' },
    token: { type: 'string', default: process.env.OZ0_TOKEN_FILE ?? '/var/run/secrets/oz0/token' },
    seconds: { type: 'string', default: '30' },
    callers: { type: 'string', default: '1' },
    pause: { type: 'string', default: '50' },
    timeout: { type: 'string', default: '60000' },
    meta: { type: 'string', default: '' },
  },
});

/** The kubelet renews the token's file; read it for each request. */
const withToken = (input, init = {}) => {
  const headers = new Headers(init.headers);
  headers.set('authorization', `Bearer ${readFileSync(values.token, 'utf8').trim()}`);
  return fetch(input, { ...init, headers });
};

async function connect() {
  const info = { name: 'demo-agent', version: '1.0.0' };
  const url = new URL(values.url);
  if (values.client === 'v1') {
    const { Client } = await import('@modelcontextprotocol/sdk/client/index.js');
    const { StreamableHTTPClientTransport } = await import('@modelcontextprotocol/sdk/client/streamableHttp.js');
    const client = new Client(info);
    await client.connect(new StreamableHTTPClientTransport(url, { fetch: withToken }));
    return { client, call: (params, options) => client.callTool(params, undefined, options) };
  }
  const { Client, StreamableHTTPClientTransport } = await import('@modelcontextprotocol/client');
  const mode = values.era === 'legacy' ? 'legacy' : { pin: '2026-07-28' };
  const client = new Client(info, { versionNegotiation: { mode } });
  await client.connect(new StreamableHTTPClientTransport(url, { fetch: withToken }));
  return { client, call: (params, options) => client.callTool(params, options) };
}

const [command, name, json = '{}'] = positionals;
const options = { timeout: Number(values.timeout) };
const request = () => ({
  name,
  arguments: JSON.parse(json),
  ...(values.meta === '' ? {} : { _meta: JSON.parse(values.meta) }),
});

if (command === 'list') {
  const { client } = await connect();
  const { tools } = await client.listTools();
  console.log(JSON.stringify(tools, undefined, 1));
  await client.close();
} else if (command === 'call' && name) {
  const { client, call } = await connect();
  try {
    const result = await call(request(), options);
    console.log(JSON.stringify(result, undefined, 1));
  } catch (error) {
    console.log(JSON.stringify({ error: { code: error.code, message: error.message } }, undefined, 1));
    process.exitCode = 1;
  }
  await client.close();
} else if (command === 'steady' && name) {
  const end = Date.now() + Number(values.seconds) * 1000;
  const caller = async () => {
    let connection;
    while (Date.now() < end) {
      const started = Date.now();
      const line = { at: new Date(started).toISOString() };
      try {
        connection ??= await connect();
        const result = await connection.call(request(), options);
        const text = result.content?.[0]?.text;
        Object.assign(line, { ok: result.isError !== true, text: text?.slice(0, 300), meta: result._meta });
      } catch (error) {
        Object.assign(line, { ok: false, error: String(error.message).slice(0, 300), code: error.code });
        // A lost connection is an agent's to make again; a refusal is not.
        await connection?.client.close().catch(() => {});
        connection = undefined;
      }
      console.log(JSON.stringify({ ...line, ms: Date.now() - started }));
      await new Promise((resolve) => setTimeout(resolve, Number(values.pause)));
    }
    await connection?.client.close().catch(() => {});
  };
  await Promise.all(Array.from({ length: Number(values.callers) }, caller));
} else {
  console.error('usage: agent list | call FUNCTION [JSON] | steady FUNCTION [JSON] (see the head of agent.mjs)');
  process.exit(64);
}
