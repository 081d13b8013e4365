/** What becomes of a call: it runs, waits for a person, or is refused. Refuse beats wait beats run. Pure. */

export type Verdict = 'run' | 'wait' | 'refuse';

const STRICTNESS: Readonly<Record<Verdict, number>> = { run: 0, wait: 1, refuse: 2 };

export function stricter(a: Verdict, b: Verdict): Verdict {
  return STRICTNESS[b] > STRICTNESS[a] ? b : a;
}

export function looser(a: Verdict, b: Verdict): Verdict {
  return STRICTNESS[b] < STRICTNESS[a] ? b : a;
}

/** Of none: undefined. */
export function strictest(verdicts: readonly Verdict[]): Verdict | undefined {
  return verdicts.length === 0 ? undefined : verdicts.reduce(stricter);
}
