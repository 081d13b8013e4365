import type { KubeObject } from '../../src/engine/contract.ts';
import type { Status } from '../../src/engine/status.ts';

/** The rules of conditions, of any kind (after Flux' checker). Throws with the one that is broken. */
export function checkStatus(object: KubeObject): void {
  const status = object['status'] as (Status & { readonly observedGeneration?: number }) | undefined;
  const conditions = status?.conditions ?? [];
  const of = (type: string) => conditions.find((condition) => condition.type === type);
  const fail = (rule: string): never => {
    throw new Error(`[I3] ${object.kind} ${object.metadata.name}: ${rule}`);
  };
  const ready = of('Ready');
  if (!ready) throw new Error(`[I3] ${object.kind} ${object.metadata.name}: Ready is missing`);
  if ((status?.observedGeneration ?? 0) > (object.metadata.generation ?? 0)) fail('it observed what is not there yet');
  const others = conditions.filter(({ type }) => !['Ready', 'Reconciling', 'Stalled'].includes(type));
  if (ready.status === 'True' && others.some((condition) => condition.status !== 'True')) fail('Ready lies');
  if (ready.status !== 'False' && others.some((condition) => condition.status === 'False')) fail('Ready hides a False');
  if (of('Stalled') && of('Reconciling')) fail('Stalled and Reconciling at once');
  if ([of('Stalled'), of('Reconciling')].some((c) => c && c.status !== 'True')) fail('shown though not true');
  if (of('Reconciling') && ready.status !== 'Unknown') fail('Reconciling though Ready is known');
  for (const { type, reason, message } of conditions) {
    if (!/^[A-Z][A-Za-z]*$/.test(reason)) fail(`the reason of ${type} is no constant`);
    if (message.length > 1024) fail(`the message of ${type} is too long`);
  }
}
