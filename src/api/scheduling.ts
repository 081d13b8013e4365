/** Where a tool's pods may be put, beside their affinity; as in a pod's spec. */
import { choice, integer, list, map, object, optional, type Rule, text } from './schema.ts';

const LABEL_KEY_PATTERN =
  '^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?([.][a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?){0,8}/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$';
const LABEL_KEY = new RegExp(LABEL_KEY_PATTERN);
const LABEL_VALUE = /^([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?$/;

export const nodeSelector = map(
  text({
    description: "Value of the node's label.",
    max: 63,
    pattern: LABEL_VALUE,
    patternMessage: 'must be a label value',
  }),
  {
    description: 'Labels that a node must have to run this tool.',
    max: 16,
    rules: [
      {
        cel: `self.all(key, key.size() <= 253 && key.matches('${LABEL_KEY_PATTERN}'))`,
        test: (labels) => Object.keys(labels).every((key) => key.length <= 253 && LABEL_KEY.test(key)),
        message: 'keys must be names of labels',
      },
    ],
  },
);

type Toleration = {
  readonly key?: string;
  readonly operator?: string;
  readonly value?: string;
  readonly effect?: string;
  readonly tolerationSeconds?: number;
};

const tolerationRules: readonly Rule<Toleration>[] = [
  {
    cel: "has(self.key) || (has(self.operator) && self.operator == 'Exists')",
    test: ({ key, operator }) => key !== undefined || operator === 'Exists',
    message: 'without a key the operator must be Exists',
  },
  {
    cel: "!has(self.value) || !has(self.operator) || self.operator == 'Equal'",
    test: ({ value, operator }) => value === undefined || operator === undefined || operator === 'Equal',
    message: 'a value goes with the operator Equal only',
    field: '.value',
  },
  {
    cel: "!has(self.tolerationSeconds) || (has(self.effect) && self.effect == 'NoExecute')",
    test: ({ tolerationSeconds, effect }) => tolerationSeconds === undefined || effect === 'NoExecute',
    message: 'goes with the effect NoExecute only',
    field: '.tolerationSeconds',
  },
];

export const tolerations = list(
  object(
    {
      key: optional(
        text({
          description: 'Taint; every one where left out.',
          min: 1,
          max: 253,
          pattern: LABEL_KEY,
          patternMessage: 'must be the name of a label',
        }),
      ),
      operator: optional(choice(['Equal', 'Exists'], { description: 'Equal where left out.' })),
      value: optional(
        text({
          description: 'Value of the taint.',
          max: 63,
          pattern: LABEL_VALUE,
          patternMessage: 'must be a label value',
        }),
      ),
      effect: optional(
        choice(['NoSchedule', 'PreferNoSchedule', 'NoExecute'], {
          description: 'Effect of the taint; every one where left out.',
        }),
      ),
      tolerationSeconds: optional(
        integer({ description: 'How long a taint NoExecute is borne.', min: 0, max: 31_536_000 }),
      ),
    },
    { description: 'A taint that is borne.', rules: tolerationRules },
  ),
  { description: 'Taints of nodes that this tool bears.', max: 16, merge: 'atomic' },
);

export const runtimeClassName = text({
  description: 'RuntimeClass of the pods, such as one of gVisor or Kata.',
  min: 1,
  max: 253,
  pattern: /^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/,
  patternMessage: 'must be the name of a RuntimeClass',
});
