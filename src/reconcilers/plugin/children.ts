/** The Tools and Connections of a Plugin. */
import type { PluginConnection, PluginTool } from '../../api/plugin.ts';
import type { ToolSpec } from '../../api/tool.ts';
import { API_GROUP_VERSION, LABEL_PLUGIN, toolName } from '../../domain/naming.ts';
import type { KubeObject } from '../../engine/contract.ts';
import { MANAGED_BY } from '../operator.ts';
import type { StoredPlugin } from './plugin.ts';

/**
 * An entry becomes a Tool as it is, but for its id, which is the Tool's name; each gets all that the Plugin requires. Connections come
 * first, so that no pod starts without what it is about to have.
 */
export function pluginChildren(plugin: StoredPlugin): readonly KubeObject[] {
  const { connections = [], tools = [] } = plugin.spec;
  return [...connections.map((entry) => connectionOf(plugin, entry)), ...tools.map((entry) => toolOf(plugin, entry))];
}

function connectionOf(plugin: StoredPlugin, { name, ...spec }: PluginConnection): KubeObject {
  return { apiVersion: API_GROUP_VERSION, kind: 'Connection', metadata: childMetadata(plugin, name), spec };
}

function childMetadata({ metadata }: StoredPlugin, name: string): KubeObject['metadata'] {
  const labels = { [LABEL_PLUGIN]: metadata.name, ...MANAGED_BY };
  return { name, namespace: metadata.namespace ?? '', labels };
}

function toolOf(plugin: StoredPlugin, { id, ...settings }: PluginTool): KubeObject {
  const { metadata, spec } = plugin;
  return {
    apiVersion: API_GROUP_VERSION,
    kind: 'Tool',
    metadata: childMetadata(plugin, toolName(id)),
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
