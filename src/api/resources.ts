/** Compute resources of a tool's container. */
import { BYTES, CORES, parseQuantity } from './quantity.ts';
import { intOrText, object, optional, type Rule } from './schema.ts';

const cores = (description: string) =>
  intOrText({
    description,
    max: 24,
    pattern: CORES,
    patternMessage: 'must be cores such as 50m, 2 or 1.5: more than 0, no sign, no exponent',
  });

const bytes = (description: string) =>
  intOrText({
    description,
    max: 24,
    pattern: BYTES,
    patternMessage: 'must be bytes such as 64Mi or 1.5Gi: more than 0, no sign, no exponent',
  });

const amounts = (what: string) =>
  object(
    {
      cpu: optional(cores('Processor time, in cores: `50m` is a twentieth.')),
      memory: optional(bytes('Memory, in bytes.')),
      'ephemeral-storage': optional(bytes('Disk for `/tmp` and logs, in bytes.')),
    },
    { description: what },
  );

type Amounts = { readonly [name in (typeof NAMES)[number]]?: string | number };
const NAMES = ['cpu', 'memory', 'ephemeral-storage'] as const;

/** CEL names a field with a dash so. */
const celName = (name: string) => name.replaceAll('-', '__dash__');

const withinLimit = (
  name: (typeof NAMES)[number],
): Rule<{ readonly requests?: Amounts; readonly limits?: Amounts }> => {
  const [request, limit] = [`self.requests.${celName(name)}`, `self.limits.${celName(name)}`];
  return {
    cel: [
      `!has(self.requests) || !has(self.limits) || !has(${request}) || !has(${limit})`,
      `!quantity(string(${request})).isGreaterThan(quantity(string(${limit})))`,
    ].join(' || '),
    test: ({ requests, limits }) => {
      const [asked, most] = [requests?.[name], limits?.[name]].map((value) =>
        value === undefined ? undefined : parseQuantity(value),
      );
      return asked === undefined || most === undefined || asked <= most;
    },
    message: `the request of ${name} is over its limit`,
    field: '.requests',
  };
};

export const resources = object(
  {
    requests: optional(amounts('What is set aside for it on its node.')),
    limits: optional(amounts('What it may never pass. Memory and disk have a limit even where none is written.')),
  },
  {
    description: "Compute resources of the tool's container. What is left out comes from the operator's configuration.",
    rules: NAMES.map(withinLimit),
  },
);
