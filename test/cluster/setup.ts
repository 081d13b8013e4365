/** Once before all stories: the cluster is up, its nodes have the images, and the operator of this checkout is installed. */
import { installOperator, script } from '../../hack/operator.ts';

export async function setup(): Promise<void> {
  await script('cluster.ts', 'up');
  await script('images.ts', 'load', 'agent', 'probe', 'tool-everything', 'tool-filesystem', 'tool-time');
  await installOperator();
}
