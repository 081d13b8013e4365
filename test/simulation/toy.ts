/**
 * A reconciler as small as can be that uses everything: a parent with children of two kinds of which one must stand before the
 * other, an object that it reads, a sensor, and a hold. Its Box needs its Fence as a tool's pod needs its NetworkPolicy.
 */
import type { Fact, KubeObject, Observed, Outcome, Reconciler, Resource } from '../../src/engine/contract.ts';

export const TOY: Resource = { apiVersion: 'toys.test/v1', kind: 'Toy', plural: 'toys', namespaced: true };
export const FENCE: Resource = { apiVersion: 'toys.test/v1', kind: 'Fence', plural: 'fences', namespaced: true };
export const BOX: Resource = { apiVersion: 'toys.test/v1', kind: 'Box', plural: 'boxes', namespaced: true };
export const CONFIG: Resource = { apiVersion: 'v1', kind: 'ConfigMap', plural: 'configmaps', namespaced: true };

export interface Toy extends KubeObject {
  readonly spec: { readonly size: number; readonly boxes: readonly string[]; readonly config: string };
}

export function toy(name: string, spec: Partial<Toy['spec']> = {}): KubeObject {
  return {
    apiVersion: TOY.apiVersion,
    kind: TOY.kind,
    metadata: { name, namespace: 'ns' },
    spec: { size: 1, boxes: ['a'], config: 'config', ...spec },
  };
}

export function config(text = 'first', name = 'config'): KubeObject {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: 'ns' }, data: { text } };
}

/** `weigh` is the outside world: what a box weighs. */
export function toyReconciler(weigh: (input: unknown) => Promise<number>): Reconciler<Toy> {
  return {
    resource: TOY,
    parse: (raw) => {
      const { size, boxes, config: name } = (raw['spec'] ?? {}) as Record<string, unknown>;
      if (typeof size !== 'number' || !Array.isArray(boxes) || typeof name !== 'string') {
        return { ok: false, problem: 'spec: size, boxes and config are needed' };
      }
      return { ok: true, value: raw as Toy };
    },
    owns: [FENCE, BOX],
    reads: {
      config: {
        resource: CONFIG,
        select: (parent) => ({ namespace: parent.metadata.namespace ?? '', name: parent.spec.config }),
      },
    },
    sensors: [
      {
        name: 'weight',
        subject: (observed) => {
          const [box] = readyBoxes(observed);
          return box && { key: `${box.metadata.uid}/${observed.parent.spec.size}`, input: observed.parent.spec.size };
        },
        everyMs: 60_000,
        timeoutMs: 5_000,
        run: weigh,
      },
    ],
    conditions: ['Accepted', 'ConfigFound', 'BoxReady', 'Weighed'],
    reconcile,
  };
}

function reconcile(observed: Observed<Toy>): Outcome {
  const { parent } = observed;
  const { size, boxes } = parent.spec;
  if (size < 0) throw new Error('a defect that shows for some objects only');
  const accepted = fact('Accepted', 'True', 'Accepted', '');
  const [found] = observed.reads['config'] ?? [];
  if (!found) {
    const missing = fact('ConfigFound', 'False', 'ConfigMissing', `Create the ConfigMap ${parent.spec.config}.`);
    return { do: 'hold', facts: { conditions: [accepted, missing] } };
  }
  const { text } = found['data'] as { readonly text: string };
  const metadata = (suffix: string) => ({
    name: `${parent.metadata.name}-${suffix}`,
    ...(parent.metadata.namespace === undefined ? {} : { namespace: parent.metadata.namespace }),
    labels: { toy: parent.metadata.name, b: '1', a: '2' },
  });
  const fence: KubeObject = {
    apiVersion: FENCE.apiVersion,
    kind: FENCE.kind,
    metadata: metadata('fence'),
    spec: { size },
  };
  const wanted = boxes.map(
    (box): KubeObject => ({
      apiVersion: BOX.apiVersion,
      kind: BOX.kind,
      metadata: metadata(`box-${box}`),
      spec: { text, size: `${size}000m` },
    }),
  );
  const ready = readyBoxes(observed).length;
  const weight = observed.sensed['weight'];
  return {
    do: 'converge',
    // Given in an order that is not the one of `owns`: the engine's order counts.
    children: boxes.length === 0 ? [] : [...wanted, fence],
    facts: {
      conditions: [
        accepted,
        fact('ConfigFound', 'True', 'Found', ''),
        ready === boxes.length
          ? fact('BoxReady', 'True', 'Ready', `${ready} of ${boxes.length}`)
          : fact('BoxReady', 'Unknown', 'Starting', `${ready} of ${boxes.length}`),
        boxes.length === 0 || weight?.state === 'ok'
          ? fact('Weighed', 'True', 'Weighed', '')
          : fact('Weighed', 'Unknown', 'NotWeighed', weight?.state === 'failed' ? weight.problem : ''),
      ],
      status: { text, ...(weight?.state === 'ok' && boxes.length > 0 ? { weight: weight.value } : {}) },
    },
  };
}

/** Those that the other controller made ready in the form in which they now are. */
function readyBoxes(observed: Observed<Toy>): readonly KubeObject[] {
  return (observed.children[`${BOX.apiVersion}/${BOX.kind}`] ?? []).filter(
    (box) => (box['status'] as { readonly ready?: number } | undefined)?.ready === box.metadata.generation,
  );
}

function fact(type: string, status: Fact['status'], reason: string, message: string): Fact {
  return { type, status, reason, message };
}
