/** The Tools of a Plugin. */
import type { PluginTool } from '../../api/plugin.ts';
import type { ToolSpec } from '../../api/tool.ts';
import { API_GROUP_VERSION, LABEL_PLUGIN, toolName } from '../../domain/naming.ts';
import type { KubeObject } from '../../engine/contract.ts';
import { MANAGED_BY } from '../operator.ts';
import type { StoredPlugin } from './plugin.ts';

/** An entry becomes a Tool as it is, but for its id, which is the Tool's name; each gets all that the Plugin requires. */
export function pluginChildren(plugin: StoredPlugin): readonly KubeObject[] {
  return (plugin.spec.tools ?? []).map((entry) => toolOf(plugin, entry));
}

function toolOf({ metadata, spec }: StoredPlugin, { id, ...settings }: PluginTool): KubeObject {
  return {
    apiVersion: API_GROUP_VERSION,
    kind: 'Tool',
    metadata: {
      name: toolName(id),
      namespace: metadata.namespace ?? '',
      labels: { [LABEL_PLUGIN]: metadata.name, ...MANAGED_BY },
    },
    spec: { plugin: metadata.name, ...settings, ...required(metadata.name, spec.requires) },
  };
}

/** The Secret is named as the Plugin unless it says otherwise, which a Tool would not know. */
function required(
  plugin: string,
  requires: StoredPlugin['spec']['requires'],
): Pick<ToolSpec, 'secrets' | 'secretRef' | 'inject'> {
  const { secrets = [], secretRef, inject } = requires ?? {};
  if (secrets.length === 0) return {};
  return { secrets, secretRef: secretRef ?? { name: plugin }, ...(inject === undefined ? {} : { inject }) };
}
