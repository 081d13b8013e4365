/** Who asks the API server in stories about admission and rights, and what they get for an answer. */
import { Agent, request as httpsRequest } from 'node:https';
import { expect } from 'vitest';
import { kubeconfig } from '../../hack/cluster/layout.ts';
import { program } from '../../hack/cluster/programs.ts';
import { run } from '../../hack/shell/command.ts';
import { waitFor } from '../../hack/shell/wait.ts';
import { loadConnection } from '../../src/kube/connection.ts';
import { apply, kubectlAs, type Manifest, OPERATOR_NAMESPACE } from './cluster.ts';

export interface Actor {
  readonly user: string;
  readonly groups: readonly string[];
}

export type Component = 'controller' | 'gateway' | 'egress' | 'edge';
export const components: readonly Component[] = ['controller', 'gateway', 'egress', 'edge'];

export const person = (user: string, ...groups: string[]): Actor => ({
  user,
  groups: [...groups, 'system:authenticated'],
});

export const account = (namespace: string, name: string): Actor => ({
  user: `system:serviceaccount:${namespace}:${name}`,
  groups: ['system:serviceaccounts', `system:serviceaccounts:${namespace}`, 'system:authenticated'],
});

export const component = (name: Component): Actor => account(OPERATOR_NAMESPACE, `oz0-${name}`);

/** Gives a person a ClusterRole within one namespace. */
export async function bind(namespace: string, { user }: Actor, clusterRole: string): Promise<void> {
  await apply({
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'RoleBinding',
    metadata: { name: `${user}-${clusterRole}`, namespace },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: clusterRole },
    subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: user }],
  });
}

export interface Where {
  /** None: in all namespaces. */
  readonly namespace?: string;
  /** None: of any name. */
  readonly name?: string;
}

/** A verb, a resource as in `tools.oz0.ai/status`, and where. */
export type Question = readonly [verb: string, resource: string, where?: Where];

/** Which of these RBAC lets someone do, as the API server judges; admission is not asked. */
export async function granted({ user, groups }: Actor, questions: readonly Question[]): Promise<string[]> {
  const reviews = questions.map(([verb, resource, where = {}]) => {
    const [type = '', subresource] = resource.split('/');
    const [plural = '', ...group] = type.split('.');
    return {
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SubjectAccessReview',
      spec: {
        user,
        groups,
        resourceAttributes: {
          verb,
          group: group.join('.'),
          resource: plural,
          ...(subresource === undefined ? {} : { subresource }),
          ...where,
        },
      },
    };
  });
  const answer = await run(
    program('kubectl'),
    [
      '--kubeconfig',
      kubeconfig,
      'create',
      '--filename=-',
      '--output=jsonpath={.status.allowed}{.status.evaluationError}{"\\n"}',
    ],
    { input: reviews.map((review) => JSON.stringify(review)).join('\n---\n'), timeoutSeconds: 60 },
  );
  const verdicts = answer.trim().split('\n');
  expect(verdicts.filter((verdict) => verdict !== 'true' && verdict !== 'false')).toEqual([]);
  expect(verdicts.length).toBe(questions.length);
  return questions
    .filter((_, index) => verdicts[index] === 'true')
    .map(([verb, resource, { name } = {}]) => `${verb} ${resource}${name === undefined ? '' : ` ${name}`}`);
}

/** Every verb on every resource. */
export const each = (verbs: readonly string[], resources: readonly string[], where?: Where): Question[] =>
  verbs.flatMap((verb) => resources.map((resource): Question => (where ? [verb, resource, where] : [verb, resource])));

/** Waits until the API server has taken in a binding. */
export async function untilMay(actor: Actor, verb: string, resource: string, namespace: string): Promise<void> {
  await waitFor(
    `${actor.user} may ${verb} ${resource}`,
    async () => (await granted(actor, [[verb, resource, { namespace }]]))[0],
    { timeoutSeconds: 20 },
  );
}

export const ask = ({ user, groups }: Actor, args: readonly string[], input?: Manifest) =>
  kubectlAs(user, groups, args, input === undefined ? undefined : JSON.stringify(input));

/** What would become of an object: everything happens but the writing. */
export const tryCreate = (actor: Actor, { kind, metadata, ...rest }: Manifest): Promise<Answer> =>
  request(actor, 'POST', pathOf(kind, metadata.namespace), 'application/json', { kind, metadata, ...rest });

/** Of a change likewise. `object` is as kubectl writes it: `deployment/own`. */
export function tryPatch(
  actor: Actor,
  namespace: string,
  object: string,
  patch: unknown,
  subresource?: string,
): Promise<Answer> {
  const [kind = '', name] = object.split('/');
  const path = [`${pathOf(kind, namespace)}/${name}`, ...(subresource ? [subresource] : [])].join('/');
  return request(actor, 'PATCH', path, 'application/merge-patch+json', patch);
}

const GROUPS: Record<string, readonly string[]> = {
  'api/v1': [
    'pods',
    'podtemplates',
    'replicationcontrollers',
    'services',
    'endpoints',
    'serviceaccounts',
    'secrets',
    'configmaps',
  ],
  'apis/apps/v1': ['deployments', 'daemonsets', 'statefulsets', 'replicasets'],
  'apis/batch/v1': ['jobs', 'cronjobs'],
  'apis/discovery.k8s.io/v1': ['endpointslices'],
  'apis/networking.k8s.io/v1': ['networkpolicies'],
  'apis/oz0.ai/v1alpha1': [
    'tools',
    'plugins',
    'connections',
    'agents',
    'toolpolicies',
    'stops',
    'snapshotapprovals',
    'toolcalls',
  ],
};

function pathOf(kind: string, namespace: string | undefined): string {
  const plural = kind.toLowerCase().replace(/y$/, 'ie').replace(/s?$/, 's');
  const group = Object.keys(GROUPS).find((one) => GROUPS[one]?.includes(plural));
  if (group === undefined || namespace === undefined) throw new Error(`where is a ${kind}?`);
  return `/${group}/namespaces/${namespace}/${plural}`;
}

const source = loadConnection({ kubeconfig });
const keepAlive = new Agent({ keepAlive: true });

/** One request without kubectl, which takes a third of a second to start. */
async function request(actor: Actor, method: string, path: string, type: string, body: unknown): Promise<Answer> {
  const { server, authorization, tls } = await source.current();
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  const call = httpsRequest(`${server}${path}?dryRun=All`, {
    method,
    agent: keepAlive,
    headers: {
      'content-type': type,
      'impersonate-user': actor.user,
      'impersonate-group': [...actor.groups],
      ...(authorization === undefined ? {} : { authorization }),
    },
    rejectUnauthorized: tls.verify,
    ...(tls.ca === undefined ? {} : { ca: tls.ca }),
    ...(tls.cert === undefined ? {} : { cert: tls.cert }),
    ...(tls.key === undefined ? {} : { key: tls.key }),
    timeout: 30_000,
  });
  call.on('timeout', () => call.destroy(new Error('no answer in 30 s')));
  call.on('error', reject);
  call.on('response', async (response) => {
    const text = (await response.setEncoding('utf8').toArray()).join('');
    const ok = (response.statusCode ?? 500) < 300;
    resolve({ ok, output: ok ? text : JSON.parse(text).message });
  });
  call.end(JSON.stringify(body));
  return await promise;
}

interface Answer {
  readonly ok: boolean;
  readonly output: string;
}

/** Refused by that policy of ours, and not by chance by something else. */
export function expectRefused({ ok, output }: Answer, policy: string, message: RegExp): void {
  expect(output).toContain(`ValidatingAdmissionPolicy '${policy}.oz0.ai'`);
  expect(output).toMatch(message);
  expect(ok).toBe(false);
}

export function expectAllowed({ ok, output }: Answer): void {
  expect(output).not.toContain('ValidatingAdmissionPolicy');
  expect(ok, output).toBe(true);
}
