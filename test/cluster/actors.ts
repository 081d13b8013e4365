/** Who asks the API server in stories about admission and rights, and what they get for an answer. */
import { expect } from 'vitest';
import { waitFor } from '../../hack/shell/wait.ts';
import { apply, kubectl, kubectlAs, type Manifest, OPERATOR_NAMESPACE } from './cluster.ts';

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

/** Gives a person a ClusterRole within one namespace, and waits until the API server knows. */
export async function bind(namespace: string, { user }: Actor, clusterRole: string): Promise<void> {
  await apply({
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'RoleBinding',
    metadata: { name: `${user}-${clusterRole}`, namespace },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: clusterRole },
    subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: user }],
  });
}

export async function untilMay(actor: Actor, ...what: string[]): Promise<void> {
  await waitFor(`${actor.user} may ${what.join(' ')}`, async () => (await may(actor, ...what)) || undefined, {
    timeoutSeconds: 20,
  });
}

/** Whether RBAC lets someone; admission is not asked. */
export async function may({ user, groups }: Actor, ...what: string[]): Promise<boolean> {
  const { output } = await kubectlAs(user, groups, ['auth', 'can-i', ...what]);
  if (/^yes\s*$/m.test(output)) return true;
  expect(output, `can-i ${what.join(' ')}`).toMatch(/(^|: )no\b/m);
  return false;
}

export const ask = ({ user, groups }: Actor, args: readonly string[], input?: Manifest) =>
  kubectlAs(user, groups, args, input === undefined ? undefined : JSON.stringify(input));

/** What would become of an object: everything happens but the writing. */
export const tryCreate = (actor: Actor, manifest: Manifest) =>
  ask(actor, ['create', '--dry-run=server', '--filename=-'], manifest);

export const tryPatch = (actor: Actor, namespace: string, object: string, patch: unknown, ...more: string[]) =>
  ask(actor, [
    'patch',
    object,
    `--namespace=${namespace}`,
    '--type=merge',
    `--patch=${JSON.stringify(patch)}`,
    '--dry-run=server',
    ...more,
  ]);

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

/** The API server itself, with every right, so that what is refused is refused by admission. */
export const admin = { kubectl, apply };
