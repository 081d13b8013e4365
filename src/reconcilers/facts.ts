/** How reconcilers say what is the case. */
import type { Fact } from '../engine/contract.ts';

/** It is so. */
export const holds = (type: string, reason: string, message: string): Fact => ({
  type,
  status: 'True',
  reason,
  message,
});

/** It is not so, and may come to be so without a person. */
export const fails = (type: string, reason: string, message: string): Fact => ({
  type,
  status: 'False',
  reason,
  message,
});

/** It is not so, and only a person's change can mend it. */
export const stalls = (type: string, reason: string, message: string): Fact => ({
  type,
  status: 'False',
  reason,
  message,
  stalled: true,
});

/** It is not known yet, as while something starts. */
export const pending = (type: string, reason: string, message: string): Fact => ({
  type,
  status: 'Unknown',
  reason,
  message,
});

/** Up to ten names, and how many more there are. */
export function nameSome(names: readonly string[]): string {
  const shown = names.slice(0, 10).join(', ');
  return names.length > 10 ? `${shown} and ${names.length - 10} more` : shown;
}
