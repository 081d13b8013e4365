/** Plugin: tools that are published, versioned and installed together. */
import type { z } from 'zod';
import { inject, injectRule } from './bindings.ts';
import { connectionFields } from './connection.ts';
import { functionsFields } from './functions.ts';
import { sharedDeclaredRule } from './headers.ts';
import { defineKind } from './kind.ts';
import { ID, NAME, NAME_MAX, nameRules } from './name.ts';
import { integer, list, object, optional, text } from './schema.ts';
import { secretRef, secretRefRule, secrets, sharedSecretsRules } from './secrets.ts';
import { settingsFields, settingsRules } from './settings.ts';
import { imageReference, pullSecrets, sourceFields } from './sources.ts';
import { statusFields } from './status.ts';

export const PLUGIN_TOOLS_MAX = 32;
/** The API server reckons the cost of their rules for as many as there may be. */
export const PLUGIN_CONNECTIONS_MAX = 8;

const pluginTool = object(
  {
    id: text({
      description:
        "The tool's name in configuration; its Tool has the name with `-` for `_`. It is the plugin's name (dashes as underscores) or its first word, or starts with one of these and `_`.",
      min: 1,
      max: NAME_MAX,
      pattern: ID,
      patternMessage: 'must be lower-case letters and digits, words joined by single underscores, a letter first',
    }),
    ...sourceFields,
    ...settingsFields,
    ...functionsFields,
  },
  { description: 'A tool of the plugin.', rules: settingsRules },
);

const pluginConnection = object(
  {
    name: text({
      description: 'Name of the Connection.',
      min: 1,
      max: NAME_MAX,
      pattern: NAME,
      patternMessage: 'must be lower-case letters and digits, words joined by single dashes, a letter first',
    }),
    ...connectionFields,
  },
  { description: 'A Connection of the plugin, for tools of its own.' },
);

const requires = object(
  {
    secrets: optional(secrets),
    secretRef: optional(
      secretRef('The Secret of this namespace that holds them. Left out, the one named as the Plugin.'),
    ),
    inject: optional(inject),
  },
  {
    description: 'What its tools need of the tenant: each of them gets all of it.',
    rules: [secretRefRule, injectRule],
  },
);

const pluginSpec = object(
  {
    version: text({
      description: 'Version of the plugin.',
      min: 1,
      max: 64,
      pattern: /^[0-9A-Za-z][0-9A-Za-z.+_-]*$/,
      patternMessage: 'must be a version such as 1.4.0',
    }),
    source: optional(
      object(
        {
          image: imageReference('The image in which tools with `mcp` run.'),
          pullSecrets: optional(pullSecrets),
        },
        { description: "The plugin's own code." },
      ),
    ),
    requires: optional(requires),
    tools: optional(
      list(pluginTool, {
        description: 'Its tools; each becomes a Tool that this Plugin owns.',
        max: PLUGIN_TOOLS_MAX,
        merge: { by: ['id'] },
      }),
    ),
    connections: optional(
      list(pluginConnection, {
        description: 'Its Connections; each becomes one that this Plugin owns.',
        max: PLUGIN_CONNECTIONS_MAX,
        merge: { by: ['name'] },
      }),
    ),
  },
  {
    description: 'What the plugin brings.',
    rules: [
      {
        cel: 'has(self.source) || !has(self.tools) || self.tools.all(tool, !has(tool.mcp))',
        test: ({ source, tools }) => source !== undefined || (tools ?? []).every(({ mcp }) => mcp === undefined),
        message: 'tools with mcp run in the image of the plugin: state it',
        field: '.source',
      },
      ...sharedSecretsRules,
      sharedDeclaredRule,
    ],
  },
);

const pluginStatus = object(
  {
    ...statusFields,
    version: optional(text({ description: 'The version whose Tools were last made.', max: 64 })),
    tools: optional(
      object(
        {
          ready: integer({ description: 'Tools that take calls.', min: 0, max: PLUGIN_TOOLS_MAX }),
          desired: integer({ description: 'Tools that it declares.', min: 0, max: PLUGIN_TOOLS_MAX }),
        },
        { description: 'Its Tools.' },
      ),
    ),
  },
  { description: 'What is the case; written by the controller only.' },
);

export const plugin = defineKind('Plugin', {
  plural: 'plugins',
  singular: 'plugin',
  shortNames: ['ozp'],
  description: 'A plugin: tools that are published, versioned and installed together.',
  spec: pluginSpec,
  status: pluginStatus,
  columns: [
    { name: 'Version', type: 'string', path: '.spec.version', description: 'Version of the plugin' },
    {
      name: 'Ready',
      type: 'string',
      path: '.status.conditions[?(@.type=="Ready")].status',
      description: 'Whether all of it works',
    },
    {
      name: 'Reason',
      type: 'string',
      path: '.status.conditions[?(@.type=="Ready")].reason',
      description: 'Why, or why not',
    },
    { name: 'Tools', type: 'integer', path: '.status.tools.desired', description: 'Tools that it declares' },
    { name: 'Working', type: 'integer', path: '.status.tools.ready', description: 'Tools that take calls' },
    { name: 'Age', type: 'date', path: '.metadata.creationTimestamp', description: 'Time since it was made' },
    {
      name: 'Message',
      type: 'string',
      path: '.status.conditions[?(@.type=="Ready")].message',
      description: 'Why, or why not, in words',
      wide: true,
    },
  ],
  rules: [
    ...nameRules,
    {
      // The whole name with underscores starts with its first word: the rule's two halves are one. The name is compared as it
      // is, since the API server knows no bound for it and would count each function of it dearly.
      cel: "!has(self.spec.tools) || self.spec.tools.all(tool, self.metadata.name == tool.id.split('_')[0] || self.metadata.name.startsWith(tool.id.split('_')[0] + '-'))",
      test: ({ metadata, spec }) =>
        (spec.tools ?? []).every(({ id }) => `${metadata.name}-`.startsWith(`${id.split('_')[0]}-`)),
      message:
        "tools: an id must be the plugin's name (dashes as underscores) or its first word, or start with one of these and _",
      field: '.spec.tools',
    },
  ],
});

export type Plugin = z.output<typeof plugin.schema>;
export type PluginSpec = z.output<typeof pluginSpec>;
export type PluginStatus = z.output<typeof pluginStatus>;
export type PluginConnection = z.output<typeof pluginConnection>;
export type PluginTool = z.output<typeof pluginTool>;
