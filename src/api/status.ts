/** What every kind's status holds; written by the controller only. */
import { choice, integer, list, object, optional, text } from './schema.ts';

const condition = object(
  {
    type: text({ description: 'What is judged.', max: 316 }),
    status: choice(['True', 'False', 'Unknown'], { description: 'The verdict; Unknown while it is not known yet.' }),
    reason: text({ description: 'Why, as a word for programs.', max: 1024 }),
    message: text({ description: 'Why, for people.', max: 32768 }),
    lastTransitionTime: text({ description: 'When `status` last changed.', max: 64, format: 'date-time' }),
    observedGeneration: optional(
      integer({ description: 'The generation of the object that was judged.', min: 0, max: Number.MAX_SAFE_INTEGER }),
    ),
  },
  { description: 'One verdict on the object.' },
);

/** Fields of every status. */
export const statusFields = {
  observedGeneration: optional(
    integer({
      description: 'The generation of the object that was last judged.',
      min: 0,
      max: Number.MAX_SAFE_INTEGER,
    }),
  ),
  conditions: optional(
    list(condition, {
      description:
        'Verdicts: `Ready` sums them up. `Reconciling` and `Stalled` are there only while true; `Stalled` means that a person must change something.',
      max: 16,
      merge: { by: ['type'] },
    }),
  ),
};
