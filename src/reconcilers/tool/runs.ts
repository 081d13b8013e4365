/** What a Tool runs, as one hash: what its listing may depend on, by the Tool's own words. Another one is another version. */
import { createHash } from 'node:crypto';
import { canonicalJson } from '../../domain/snapshot/canonical.ts';
import { type Credentials, hostsOf } from './credentials.ts';
import type { Source } from './source.ts';
import type { WrittenTool } from './tool.ts';

/**
 * Goes into the hash, which is kept in status across upgrades of the operator: whatever changes it for a Tool that did not change tries
 * every tool of the cluster in a probe pod. A field that is added here is left out where it says nothing.
 */
const FORM = 'oz0-runs-1';

/** 64 hex digits. The operator's image, resources, replicas and where it may run are no part of it, nor is the order of lists that are sets. */
export function runsOf(tool: WrittenTool, source: Source, { secrets, bindings }: Credentials): string {
  const runs = {
    ...(source.kind === 'process'
      ? { image: source.image, argv: source.argv, cwd: source.workingDir, env: tool.spec.env ?? {} }
      : { url: source.url, headers: source.headers }),
    secrets: asSet(secrets.map(({ name, secret, key }) => ({ name, secret, key }))),
    bindings: asSet(bindings),
    hosts: hostsOf(tool),
    ...(tool.spec.usesModel ? { usesModel: true } : {}),
  };
  return createHash('sha256')
    .update(`${FORM}\n${canonicalJson(runs)}`)
    .digest('hex');
}

function asSet(items: readonly unknown[]): readonly string[] {
  return items.map((item) => canonicalJson(item)).sort();
}
