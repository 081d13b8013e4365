/** Once before all stories: the cluster is up, its nodes have the images, and the operator of this checkout is installed. */
import { bridgeAddress } from '../../hack/cluster/layout.ts';
import { installOperator, script } from '../../hack/operator.ts';
import { MODEL_HOST, MODEL_SECRET, outsideAuthority, outsideCaFile } from './outside.ts';

export async function setup(): Promise<void> {
  await script('cluster.ts', 'up');
  await script('images.ts', 'load', 'agent', 'probe', 'tool-everything', 'tool-filesystem', 'tool-time');
  outsideAuthority();
  await installOperator(
    '--set-json',
    `egress.connectAllowNet=["${bridgeAddress}/32"]`,
    '--set-file',
    `egress.upstreamCA=${outsideCaFile}`,
    '--set',
    `model.url=https://${MODEL_HOST}/base,model.secretName=${MODEL_SECRET}`,
  );
}
