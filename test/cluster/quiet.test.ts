import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { auditLog } from '../../hack/cluster/layout.ts';
import { waitFor } from '../../hack/shell/wait.ts';
import { apply, conditionOf, get, type Live, OPERATOR_NAMESPACE, storyNamespace } from './cluster.ts';
import { agentOf, probeTool } from './probe.ts';

const TOOLS = 200;
const IDLE_SECONDS = Number(process.env['OZ0_IDLE_SECONDS'] ?? 600);

interface AuditEvent {
  verb: string;
  user: { username: string };
  objectRef?: { resource: string; subresource?: string; namespace?: string; name?: string };
  annotations?: Record<string, string>;
  stageTimestamp: string;
}

/** What the operator's accounts asked of the API server since a moment, as the API server itself recorded it. */
function askedSince(moment: Date): AuditEvent[] {
  return readFileSync(auditLog, 'utf8')
    .split('\n')
    .filter((line) => line.includes(`system:serviceaccount:${OPERATOR_NAMESPACE}:`))
    .map((line): AuditEvent => JSON.parse(line))
    .filter(({ stageTimestamp }) => new Date(stageTimestamp) >= moment);
}

const name = ({ verb, user, objectRef }: AuditEvent) =>
  `${user.username.split(':').at(-1)} ${verb} ${objectRef?.resource}${objectRef?.subresource ? `/${objectRef.subresource}` : ''} ${objectRef?.namespace ?? ''}/${objectRef?.name ?? ''}`;

const WRITES = ['create', 'update', 'patch', 'delete', 'deletecollection'];
// Reviews of tokens are questions in the shape of a creation; nothing is stored.
const isWrite = ({ verb, objectRef }: AuditEvent) =>
  WRITES.includes(verb) && objectRef?.resource !== 'leases' && objectRef?.resource !== 'tokenreviews';

describe(`${TOOLS} tools in peace`, () => {
  let namespace = '';
  let end: () => Promise<void> = async () => {};

  beforeAll(async () => {
    const made = await storyNamespace('quiet');
    namespace = made.name;
    end = () => made[Symbol.asyncDispose]();
    // No node has this label: the workloads exist, their pods do not, and 200 tools cost no memory.
    const nowhere = { nodeSelector: { 'oz0.test/nowhere': 'true' } };
    const names = Array.from({ length: TOOLS }, (_, index) => `quiet-${index}`);
    for (let at = 0; at < TOOLS; at += 50) {
      await apply(...names.slice(at, at + 50).map((tool) => probeTool(namespace, tool, nowhere)));
    }
    await apply(agentOf(namespace, 'all', ['agent'], ['quiet_1.*', 'quiet_2.*']));
    await waitFor(
      'every Tool has been judged',
      async () => {
        const { items } = await get('tools', `--namespace=${namespace}`);
        const judged = items.filter((tool: Live) => conditionOf(tool, 'Accepted')?.status === 'True');
        return judged.length === TOOLS ? true : undefined;
      },
      { timeoutSeconds: 180, everyMs: 2000 },
    );
    // What follows from the last change (workloads' own statuses) may still be told once.
    await sleep(20_000);
  });

  afterAll(() => end());

  test(
    '[O02] [case 109] in ten idle minutes the operator writes nothing but leases',
    async () => {
      const since = new Date();
      await sleep(IDLE_SECONDS * 1000);
      const asked = askedSince(since);
      expect(asked.some(({ objectRef }) => objectRef?.resource === 'leases')).toBe(true);
      expect(asked.filter(isWrite).map(name)).toEqual([]);
    },
    (IDLE_SECONDS + 120) * 1000,
  );

  test('[D02] [case 121] with the shipped roles nothing that the operator asked was forbidden', () => {
    // What is created in a namespace that is being deleted is answered with 403, too; that is no want of a right.
    const forbidden = askedSince(new Date(0)).filter(
      ({ annotations }) => annotations?.['authorization.k8s.io/decision'] === 'forbid',
    );
    expect([...new Set(forbidden.map(name))]).toEqual([]);
  });
});
