import { API_GROUP_VERSION } from '../../domain/naming.ts';

/** One line for a shell that approves this hash of this Tool. All of it comes from us, and nothing from the server. */
export function howToApprove(namespace: string, tool: string, hash: string): string {
  const short = hash.slice(hash.indexOf(':') + 1).slice(0, 8);
  const approval = {
    apiVersion: API_GROUP_VERSION,
    kind: 'SnapshotApproval',
    metadata: { name: `${tool}-${short}`, namespace },
    spec: { tool, hash },
  };
  return `To approve it: echo '${JSON.stringify(approval)}' | kubectl create -f -`;
}
