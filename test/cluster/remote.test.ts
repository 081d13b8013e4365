// biome-ignore-all lint/suspicious/noTemplateCurlyInString: ${...} is what users write
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import type { LyingDns } from '../integration/egress/lyingDns.ts';
import {
  agentPod,
  apply,
  callFunction,
  get,
  kubectl,
  storyNamespace,
  waitForCondition,
  waitForPod,
} from './cluster.ts';
import { listenOutside, startOutsideDns } from './outside.ts';
import { agentOf } from './probe.ts';

const HOST = 'mcp.test';

describe('a remote server as a tool', () => {
  let namespace = '';
  let dns: LyingDns;
  let stop: () => Promise<void> = async () => {};
  let end: () => Promise<void> = async () => {};
  const seen: { authorization: string | undefined; team: string | undefined }[] = [];
  let sums = 0;

  beforeAll(async () => {
    const handler = createMcpHandler(() => {
      const server = new McpServer({ name: 'far', version: '1' });
      server.registerTool('add', { inputSchema: z.object({ a: z.number(), b: z.number() }) }, async ({ a, b }) => {
        sums++;
        return { content: [{ type: 'text', text: String(a + b) }] };
      });
      return server;
    });
    stop = await listenOutside([HOST], (request, response) => {
      const { headers, method = 'GET', url = '/' } = request;
      seen.push({ authorization: headers.authorization, team: String(headers['x-team']) });
      let body = '';
      request.setEncoding('utf8').on('data', (text: string) => {
        body += text;
      });
      request.on('end', async () => {
        const own = Object.entries(headers).map(([name, value]): [string, string] => [name, String(value)]);
        const asked = new Request(`https://${HOST}${url}`, { method, headers: own, ...(body === '' ? {} : { body }) });
        const answer = await handler.fetch(asked);
        response.writeHead(answer.status, Object.fromEntries(answer.headers));
        for await (const chunk of answer.body ?? []) response.write(chunk);
        response.end();
      });
    });
    dns = await startOutsideDns();
    const made = await storyNamespace('remote');
    namespace = made.name;
    end = () => made[Symbol.asyncDispose]();
    await apply(
      {
        apiVersion: 'oz0.ai/v1alpha1',
        kind: 'Tool',
        metadata: { name: 'far', namespace },
        spec: {
          url: `https://${HOST}/mcp`,
          secrets: ['TOKEN'],
          headers: { Authorization: 'Bearer ${TOKEN}', 'X-Team': 'platform' },
          // Its server says nothing of what it does, so its calls would wait for a person.
          functions: { add: { annotations: { readOnlyHint: true } } },
        },
      },
      agentOf(namespace, 'all', ['agent'], ['far.*']),
    );
    await apply(...agentPod(namespace, 'agent', 'agent'));
    await waitForPod(namespace, 'agent');
  });

  afterAll(async () => {
    await end();
    await stop();
    await dns?.close();
  });

  test('[C05] where its secret is missing it is not started, and the condition names it', async () => {
    const tool = await waitForCondition('tool', namespace, 'far', 'Ready', 'False', 120);
    expect(JSON.stringify(tool.status.conditions)).toContain('TOKEN');
    expect(seen).toEqual([]);
  });

  test('[K06] [C05] [N12] with the secret it is listed and called, its headers on every request', async () => {
    await kubectl(
      'create',
      'secret',
      'generic',
      'far',
      `--namespace=${namespace}`,
      '--from-literal=TOKEN=token-of-far',
    );
    await waitForCondition('tool', namespace, 'far', 'Ready', 'True', 240);
    const result = await callFunction(namespace, 'agent', 'far__add', { a: 40, b: 2 });
    expect(result.content[0].text).toBe('42');
    expect(sums).toBe(1);
    expect(seen.length).toBeGreaterThan(1);
    for (const headers of seen) expect(headers).toEqual({ authorization: 'Bearer token-of-far', team: 'platform' });
  });

  test('[K06] its pod is the sidecar alone, anywhere, and reaches its one host through egress', async () => {
    const { items } = await get('pods', `--namespace=${namespace}`, '--selector=oz0.ai/tool=far');
    expect(items[0].metadata.ownerReferences[0].kind).toBe('ReplicaSet');
    const containers = [...(items[0].spec.initContainers ?? []), ...items[0].spec.containers];
    expect(containers.map(({ name }: { name: string }) => name)).toEqual(['sidecar']);
    expect(JSON.stringify(items[0])).not.toContain('token-of-far');
  });
});
