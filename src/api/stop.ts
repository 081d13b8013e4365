/** Stop: the kill switch. What it names is stopped as long as it exists. */
import type { z } from 'zod';
import { defineKind } from './kind.ts';
import { NAME_MAX } from './name.ts';
import { LINE, LINE_MESSAGE } from './policyFields.ts';
import { flag, object, optional, text } from './schema.ts';
import { statusFields } from './status.ts';

const named = (what: string, max = NAME_MAX) =>
  optional(
    text({
      description: `Name of the ${what}.`,
      min: 1,
      max,
      pattern: /^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/,
      patternMessage: `must be the name of a ${what}`,
    }),
  );

const TARGETS = ['tool', 'plugin', 'agent', 'all', 'cluster'] as const;

const stopSpec = object(
  {
    tool: named('Tool of this namespace whose calls are stopped'),
    plugin: named('Plugin of this namespace whose tools’ calls are stopped'),
    agent: named('Agent of this namespace whose calls are stopped', 253),
    all: optional(flag({ description: 'True: all calls of this namespace.' })),
    cluster: optional(flag({ description: 'True: all calls of the cluster. Only in the namespace of the operator.' })),
    because: optional(
      text({
        description: 'Why, for agents and people.',
        min: 1,
        max: 512,
        pattern: LINE,
        patternMessage: LINE_MESSAGE,
      }),
    ),
  },
  {
    description: 'What is stopped, as long as this object exists: running calls are ended, none is started.',
    rules: [
      {
        cel: `[${TARGETS.map((target) => `has(self.${target})`).join(', ')}].filter(named, named).size() == 1`,
        test: (self) => TARGETS.filter((target) => self[target] !== undefined).length === 1,
        message: `exactly one of ${TARGETS.join(', ')}`,
      },
      {
        cel: '(!has(self.all) || self.all) && (!has(self.cluster) || self.cluster)',
        test: (self) => self.all !== false && self.cluster !== false,
        message: 'all and cluster are true or left out; deleting the object ends the stop',
      },
    ],
  },
);

const stopStatus = object(statusFields, { description: 'What is the case; written by the controller only.' });

export const stop = defineKind('Stop', {
  plural: 'stops',
  singular: 'stop',
  shortNames: ['ozstop'],
  description: 'A stop: while it exists, what it names makes no calls. GitOps does not undo it.',
  spec: stopSpec,
  status: stopStatus,
  columns: [
    { name: 'Tool', type: 'string', path: '.spec.tool', description: 'The stopped Tool' },
    { name: 'Plugin', type: 'string', path: '.spec.plugin', description: 'The stopped Plugin' },
    { name: 'Agent', type: 'string', path: '.spec.agent', description: 'The stopped Agent' },
    { name: 'All', type: 'string', path: '.spec.all', description: 'Whether it is the whole namespace' },
    { name: 'Because', type: 'string', path: '.spec.because', description: 'Why' },
    { name: 'Age', type: 'date', path: '.metadata.creationTimestamp', description: 'Time since it was made' },
    { name: 'Cluster', type: 'string', path: '.spec.cluster', description: 'Whether it is the cluster', wide: true },
  ],
});

export type Stop = z.output<typeof stop.schema>;
export type StopSpec = z.output<typeof stopSpec>;
