/** Independent clients against the gateway: the SDK's v1 and v2 (both eras) and the inspector's command line. */
import { execFile } from 'node:child_process';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { Client as ClientV2, StreamableHTTPClientTransport as TransportV2 } from '@modelcontextprotocol/client';
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as TransportV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type FakeTool, startFakeTool, text } from './support/fakeTool.ts';
import { startWorld, token, until, type World } from './support/world.ts';

let world: World;
let fake: FakeTool;

beforeAll(async () => {
  world = await startWorld();
  fake = await startFakeTool({
    echo: ({ args }) => text(JSON.stringify(args)),
    structured: () => ({ structuredContent: { answer: 42 } }),
    steps: async (call) => {
      call.progress(1);
      call.progress(2);
      return text('stepped');
    },
    hang: () => undefined,
    fails: () => ({ ...text('no'), isError: true }),
  });
  fake.listed = Object.keys(fake.functions).map((name) => ({
    name,
    description: `Does ${name}.`,
    inputSchema: { type: 'object', properties: { n: { type: 'integer' } } },
    ...(name === 'structured'
      ? { outputSchema: { type: 'object', properties: { answer: { type: 'integer' } }, required: ['answer'] } }
      : {}),
  }));
  world.tool('acme');
  world.agent('reviewer', ['acme.*']);
  world.pod('acme', fake);
  await world.listed(Object.keys(fake.functions).map((name) => `acme__${name}`));
});

afterAll(async () => {
  await Promise.all([world.close(), fake.close()]);
  expect(world.problems).toEqual([]);
});

const requestInit = { headers: { authorization: `Bearer ${token()}` } };

interface Common {
  readonly listTools: () => Promise<{ tools: { name: string }[] }>;
  readonly callTool: (
    params: { name: string; arguments?: Record<string, unknown> },
    options?: object,
  ) => Promise<unknown>;
  readonly close: () => Promise<void>;
  readonly onListChanged: (then: () => void) => void;
}

async function v1(): Promise<Common> {
  const client = new ClientV1({ name: 'v1', version: '1' });
  await client.connect(new TransportV1(world.url, { requestInit }) as Transport);
  const { ToolListChangedNotificationSchema } = await import('@modelcontextprotocol/sdk/types.js');
  return {
    listTools: () => client.listTools(),
    callTool: (params, options) => client.callTool(params, undefined, options),
    close: () => client.close(),
    onListChanged: (then) => client.setNotificationHandler(ToolListChangedNotificationSchema, then),
  };
}

async function v2(mode: 'legacy' | 'auto'): Promise<Common> {
  let changed = (): void => {};
  const client = new ClientV2(
    { name: 'v2', version: '1' },
    { versionNegotiation: { mode }, listChanged: { tools: { onChanged: () => changed() } } },
  );
  await client.connect(new TransportV2(world.url, { requestInit }));
  return {
    listTools: () => client.listTools(),
    callTool: (params, options) => client.callTool(params, options),
    close: () => client.close(),
    onListChanged: (then) => {
      changed = then;
    },
  };
}

describe.each([
  ['SDK v1', v1],
  ['SDK v2, older era', () => v2('legacy')],
  ['SDK v2, stateless era', () => v2('auto')],
])('%s', (_, connect) => {
  let client: Common;
  beforeAll(async () => {
    client = await connect();
  });
  afterAll(() => client.close());

  test('[P01] lists under the names that the model sees', async () => {
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toEqual([
      'acme__echo',
      'acme__fails',
      'acme__hang',
      'acme__steps',
      'acme__structured',
    ]);
  });

  test('[P01] calls, gets text, structured content as text too, and errors as results', async () => {
    expect(await client.callTool({ name: 'acme__echo', arguments: { n: 1 } })).toMatchObject({
      content: [{ type: 'text', text: '{"n":1}' }],
    });
    expect(await client.callTool({ name: 'acme__structured' })).toMatchObject({
      content: [{ type: 'text', text: '{"answer":42}' }],
      structuredContent: { answer: 42 },
    });
    expect(await client.callTool({ name: 'acme__fails' })).toMatchObject({ isError: true });
  });

  test('[Y04] an unknown function is a protocol error', async () => {
    await expect(client.callTool({ name: 'acme__absent' })).rejects.toMatchObject({ code: -32602 });
  });

  test('[R09] progress arrives', async () => {
    const seen: number[] = [];
    const onprogress = ({ progress }: { progress: number }) => seen.push(progress);
    await client.callTool({ name: 'acme__steps' }, { onprogress });
    expect(seen).toEqual([1, 2]);
  });

  test('[R09] cancelling ends the call at the tool', async () => {
    const before = fake.calls.length;
    const cancel = new AbortController();
    const call = client.callTool({ name: 'acme__hang' }, { signal: cancel.signal });
    const ended = expect(call).rejects.toThrow();
    await until(() => fake.calls.length > before, 'it runs');
    cancel.abort();
    await ended;
    await fake.calls.at(-1)?.closed;
  });

  test('[N04] it hears that the list changed', async () => {
    let heard = 0;
    client.onListChanged(() => {
      heard += 1;
    });
    const { listed } = fake;
    fake.listed = [...(listed ?? []), { name: 'more', inputSchema: { type: 'object' } }];
    fake.changed();
    await until(() => heard > 0, 'it hears');
    fake.listed = listed;
    fake.changed();
    await until(() => heard > 1, 'it hears again');
  });
});

describe('the inspector', () => {
  const require = createRequire(import.meta.url);
  const cli = join(
    dirname(require.resolve('@modelcontextprotocol/inspector/package.json')),
    'clients/launcher/build/index.js',
  );
  const run = async (...args: string[]) => {
    const header = `Authorization: Bearer ${token()}`;
    const command = [
      cli,
      '--cli',
      '--server-url',
      String(world.url),
      '--transport',
      'http',
      '--header',
      header,
      ...args,
    ];
    const { stdout } = await promisify(execFile)(process.execPath, command, {
      timeout: 25_000,
      // It keeps a catalog in its home.
      env: { ...process.env, HOME: tmpdir() },
    });
    return JSON.parse(stdout);
  };

  test.each(['legacy', 'modern'])('lists and calls, era %s', async (era) => {
    const listed = await run('--method', 'tools/list', '--protocol-era', era);
    expect(listed.tools.map(({ name }: { name: string }) => name)).toContain('acme__echo');
    const called = await run(
      '--method',
      'tools/call',
      '--tool-name',
      'acme__echo',
      '--tool-arg',
      'n=7',
      '--protocol-era',
      era,
    );
    expect(called.content[0].text).toBe('{"n":7}');
  });
});
