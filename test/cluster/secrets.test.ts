// biome-ignore-all lint/suspicious/noTemplateCurlyInString: ${...} is what users write
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { auditLog } from '../../hack/cluster/layout.ts';
import { waitFor } from '../../hack/shell/wait.ts';
import type { LyingDns } from '../integration/egress/lyingDns.ts';
import {
  agentPod,
  apply,
  callFunction,
  conditionOf,
  get,
  kubectl,
  type Live,
  OPERATOR_NAMESPACE,
  storyNamespace,
  waitForCondition,
  waitForPod,
} from './cluster.ts';
import { MODEL_HOST, MODEL_SECRET, type OutsideHost, startOutsideDns, startOutsideHost } from './outside.ts';
import { agentOf, probeTool } from './probe.ts';

const BOUND = 'bound.test';
const UNBOUND = 'unbound.test';
const UNLISTED = 'unlisted.test';
/** Listed, and led to addresses inside by a DNS server that lies. */
const INSIDE = 'inside.test';
const canary = () => `canary${randomBytes(12).toString('hex')}`;

/** What a secret looks like where somebody wrote it down in another form. */
function forms(secret: string): string[] {
  const bytes = Buffer.from(secret);
  const base64 = [0, 1, 2].map((shift) =>
    Buffer.concat([Buffer.alloc(shift), bytes])
      .toString('base64')
      .slice(shift === 0 ? 0 : 4, -4),
  );
  return [secret, ...base64, bytes.toString('hex'), [...secret].reverse().join('')];
}

describe('secrets that a tool never sees, and one guarded way out', () => {
  let namespace = '';
  let outside: OutsideHost;
  let dns: LyingDns;
  let end: () => Promise<void> = async () => {};
  const bound = canary();
  const own = canary();
  const modelKey = canary();

  const look = async (name: string, args: unknown = {}): Promise<Live> => {
    const result = await callFunction(namespace, 'agent', `probe__${name}`, args);
    if (!result.content) throw new Error(JSON.stringify(result));
    return JSON.parse(result.content[0].text);
  };
  const fetchAs = async (url: string, headers: Record<string, string> = {}, more: object = {}) =>
    await look('fetch', { url, headers, ...more });
  const environ = async (): Promise<Record<string, string>> => await look('environ');
  const putSecret = (values: Record<string, string>) =>
    apply({ apiVersion: 'v1', kind: 'Secret', metadata: { name: 'probe', namespace }, stringData: values });

  beforeAll(async () => {
    outside = await startOutsideHost([BOUND, UNBOUND, UNLISTED, INSIDE, MODEL_HOST, 'elsewhere.test']);
    dns = await startOutsideDns();
    const made = await storyNamespace('secrets');
    namespace = made.name;
    end = () => made[Symbol.asyncDispose]();
    await putSecret({ BOUND_KEY: bound, OWN_KEY: own });
    await apply({
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: MODEL_SECRET, namespace: OPERATOR_NAMESPACE },
      stringData: { key: modelKey },
    });
    await apply(
      probeTool(namespace, 'probe', {
        affinity: 'any',
        env: { PLANTED: 'planted-for-the-search' },
        secrets: ['BOUND_KEY', 'OWN_KEY'],
        inject: [{ secret: 'BOUND_KEY', host: BOUND, header: 'Authorization', format: 'Bearer ${value}' }],
        hosts: [BOUND, UNBOUND, INSIDE],
        usesModel: true,
      }),
      agentOf(namespace, 'all', ['agent'], ['probe.*', 'search.*']),
    );
    await waitForCondition('tool', namespace, 'probe', 'Ready', 'True', 240);
    await apply(...agentPod(namespace, 'agent', 'agent'));
    await waitForPod(namespace, 'agent');
  });

  afterAll(async () => {
    await end();
    await kubectl('delete', 'secret', MODEL_SECRET, `--namespace=${OPERATOR_NAMESPACE}`, '--ignore-not-found');
    await outside?.close();
    await dns?.close();
  });

  test('[C01] [C02] a secret of its own is in its environment; of a bound one there is a placeholder', async () => {
    const environment = await environ();
    expect(environment['OWN_KEY']).toBe(own);
    expect(environment['BOUND_KEY']).toMatch(/^[A-Za-z0-9]{20,}$/);
    expect(environment['BOUND_KEY']).not.toBe(bound);
  });

  test('[C02] the value goes to its host, in its header; what the host repeats comes back without it', async () => {
    const { BOUND_KEY: placeholder = '' } = await environ();
    for (const path of ['/plain', '/base64', '/split']) {
      outside.received.length = 0;
      const answer = await fetchAs(`https://${BOUND}${path}`, { authorization: `Bearer ${placeholder}` });
      expect(answer.status).toBe(200);
      expect(outside.received.map(({ headers }) => headers['authorization'])).toEqual([`Bearer ${bound}`]);
      for (const form of forms(bound)) expect(JSON.stringify(answer)).not.toContain(form);
    }
  });

  test('[C02] [case 73] a placeholder in another place is refused, and nothing of it leaves', async () => {
    const { BOUND_KEY: placeholder = '' } = await environ();
    outside.received.length = 0;
    const tries: [string, Record<string, string>, object][] = [
      [`https://${BOUND}/?key=${placeholder}`, {}, {}],
      [`https://${BOUND}/`, { 'x-other': placeholder }, {}],
      [`https://${BOUND}/`, { authorization: `Bearer x${placeholder}` }, {}],
      [`https://${BOUND}/`, { cookie: `a=${placeholder}` }, {}],
      [`https://${BOUND}/`, {}, { method: 'POST', body: JSON.stringify({ key: placeholder }) }],
    ];
    for (const [url, headers, more] of tries) {
      const answer = await fetchAs(url, headers, more);
      expect(answer.status ?? answer.error).not.toBe(200);
    }
    expect(JSON.stringify(outside.received)).not.toContain(placeholder);
    expect(JSON.stringify(outside.received)).not.toContain(bound);
  });

  test('[C02] [case 76] another host gets the placeholder at most, and no redirect takes a secret along', async () => {
    const { BOUND_KEY: placeholder = '' } = await environ();
    outside.received.length = 0;
    await fetchAs(`https://${UNBOUND}/plain`, { authorization: `Bearer ${placeholder}` });
    const redirected = await fetchAs(`https://${BOUND}/redirect`, { authorization: `Bearer ${placeholder}` });
    expect(redirected.status).toBe(302);
    const others = outside.received.filter(({ host }) => host !== BOUND);
    expect(others.map(({ host }) => host)).toEqual([UNBOUND]);
    expect(JSON.stringify(others)).not.toContain(bound);
  });

  test('[N09] [S05] what is not on its list it cannot reach, and is told what to do', async () => {
    outside.received.length = 0;
    const answer = await fetchAs(`https://${UNLISTED}/`);
    expect(answer.status).toBeUndefined();
    expect(outside.received).toEqual([]);
  });

  test('[N08] [case 103] a listed name that leads inside is refused', async () => {
    const api = (await get('service', 'kubernetes', '--namespace=default')).spec.clusterIP;
    const node = (await get('node', 'node1')).status.addresses[0].address;
    const lead = dns.zone;
    try {
      for (const value of [api, node, '169.254.169.254', '127.0.0.1']) {
        dns.zone = (question) =>
          question.name === INSIDE
            ? question.type === 'A'
              ? { records: [{ type: 'A', value, ttl: 0 }] }
              : {}
            : lead(question);
        const answer = await fetchAs(`https://${INSIDE}/`);
        expect(answer.status, value).toBeUndefined();
      }
    } finally {
      dns.zone = lead;
    }
    expect(dns.asked.some(({ name }) => name === INSIDE)).toBe(true);
  });

  test('[S09] a model is asked at a loopback address, with a key that egress has and the pod has not', async () => {
    const { OPENAI_BASE_URL = '', OPENAI_API_KEY = '', ANTHROPIC_BASE_URL = '' } = await environ();
    const headers = { authorization: `Bearer ${OPENAI_API_KEY}`, 'content-type': 'application/json' };
    const chat = { method: 'POST', body: '{"model":"m"}' };
    // The kubelet shows egress a Secret that is new within a minute or two.
    const ask = async () => {
      outside.received.length = 0;
      const answer = await fetchAs(`${OPENAI_BASE_URL}/chat/completions`, headers, chat);
      for (const form of forms(modelKey)) expect(JSON.stringify(answer)).not.toContain(form);
      return answer.status === 200 ? answer : undefined;
    };
    await waitFor('a model to be asked', ask, { timeoutSeconds: 180, everyMs: 2_000 });
    expect(outside.received).toMatchObject([
      { host: MODEL_HOST, path: '/base/v1/chat/completions', headers: { authorization: `Bearer ${modelKey}` } },
    ]);
    outside.received.length = 0;
    expect((await fetchAs(`${ANTHROPIC_BASE_URL}/key/generate`, headers, chat)).status).toBe(403);
    expect(outside.received).toEqual([]);
    const needles = forms(modelKey).map((text) => Buffer.from(text).toString('base64'));
    expect((await look('search', { needles })).found).toEqual([]);
  });

  test('[C03] [case 83] the value and its forms are in no file, process, object, event, log or audit line', async () => {
    const encode = (text: string) => Buffer.from(text).toString('base64');
    const searched = await look('search', { needles: [...forms(bound).map(encode), encode('planted-for-the-search')] });
    // The image holds little but Node.js itself.
    expect(searched.files).toBeGreaterThan(10);
    // The search finds what is there to be found: the planted variable, last in its list; and nothing else.
    const planted = forms(bound).length;
    expect(searched.found.some(({ needle }: { needle: number }) => needle === planted)).toBe(true);
    expect(searched.found.filter(({ needle }: { needle: number }) => needle !== planted)).toEqual([]);

    const kinds =
      'tools,agents,plugins,connections,pods,daemonsets,deployments,replicasets,configmaps,events,networkpolicies,serviceaccounts,services';
    const texts = [await kubectl('get', kinds, '--all-namespaces', '--output=yaml', '--show-managed-fields')];
    for (const where of [OPERATOR_NAMESPACE, namespace]) {
      for (const pod of (await get('pods', `--namespace=${where}`)).items) {
        texts.push(await kubectl('logs', pod.metadata.name, `--namespace=${where}`, '--all-containers', '--prefix'));
      }
    }
    texts.push(readFileSync(auditLog, 'utf8'));
    const everything = texts.join('\n');
    expect(everything).toContain('planted-for-the-search');
    for (const secret of [bound, own]) for (const form of forms(secret)) expect(everything).not.toContain(form);
  });

  test('[C04] [case 82] a changed Secret takes effect without another pod', async () => {
    const pods = async () =>
      (await get('pods', `--namespace=${namespace}`, '--selector=oz0.ai/tool=probe')).items.map(
        (pod: Live) => pod.metadata.uid,
      );
    const before = await pods();
    const next = canary();
    const nextOwn = canary();
    await putSecret({ BOUND_KEY: next, OWN_KEY: nextOwn });
    await waitFor(
      'the new value arrives at the host, and the new variable at the tool',
      async () => {
        const environment = await environ();
        outside.received.length = 0;
        await fetchAs(`https://${BOUND}/plain`, { authorization: `Bearer ${environment['BOUND_KEY']}` });
        const sent = outside.received[0]?.headers['authorization'];
        if (sent === `Bearer ${next}` && environment['OWN_KEY'] === nextOwn) return true;
        throw new Error(sent === `Bearer ${bound}` ? 'the old value was sent' : 'the old variable is there');
      },
      { timeoutSeconds: 150, everyMs: 2000 },
    );
    expect(await pods()).toEqual(before);
  });

  test('[C01] [case 81] a missing or empty secret stops the tool, and its condition names it', async () => {
    await apply({
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'lacking', namespace },
      stringData: { EMPTY: '' },
    });
    await apply(probeTool(namespace, 'lacking', { affinity: 'any', secrets: ['EMPTY', 'ABSENT'] }));
    const tool = await waitForCondition('tool', namespace, 'lacking', 'Ready', 'False', 120);
    const words = JSON.stringify(tool.status.conditions);
    expect(words).toContain('EMPTY');
    expect(words).toContain('ABSENT');
    expect(conditionOf(tool, 'Sandboxed')?.status).not.toBe('False');
    await apply({
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'lacking', namespace },
      stringData: { EMPTY: 'a', ABSENT: 'b' },
    });
    await waitForCondition('tool', namespace, 'lacking', 'Ready', 'True', 180);
  });

  test("[C02] an admin's Connection binds a secret for a tool that does not bind it", async () => {
    const key = canary();
    await apply(
      { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'admins', namespace }, stringData: { TOKEN: key } },
      {
        apiVersion: 'oz0.ai/v1alpha1',
        kind: 'Connection',
        metadata: { name: 'admins', namespace },
        spec: {
          tools: ['search'],
          kind: 'secret',
          secret: { secretRef: { name: 'admins' }, key: 'TOKEN' },
          bind: [{ host: BOUND, header: 'Authorization', format: 'Bearer ${value}' }],
        },
      },
      probeTool(namespace, 'search', { affinity: 'any', hosts: [BOUND] }),
    );
    await waitForCondition('tool', namespace, 'search', 'Ready', 'True', 180);
    const read = async (name: string, args: unknown) =>
      JSON.parse((await callFunction(namespace, 'agent', `search__${name}`, args)).content[0].text);
    const placeholder = Object.entries<string>(await read('environ', {})).find(([, value]) =>
      /^[A-Za-z0-9]{20,}$/.test(value),
    );
    outside.received.length = 0;
    await read('fetch', { url: `https://${BOUND}/plain`, headers: { authorization: `Bearer ${placeholder?.[1]}` } });
    expect(outside.received[0]?.headers['authorization']).toBe(`Bearer ${key}`);
  });
});
