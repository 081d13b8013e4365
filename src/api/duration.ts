/** Durations as the kinds write them: hours, minutes and seconds, such as `90s`, `1m30s` or `30m`. */

/** Also within what CEL's `duration()` takes, so that no rule over it fails to be evaluated. */
export const DURATION = /^([0-9]{1,4}h)?([0-9]{1,5}m)?([0-9]{1,6}s)?$/;

/** Milliseconds of a duration that matches `DURATION`; undefined for anything else, the empty text too. */
export function parseDuration(value: string): number | undefined {
  const match = DURATION.exec(value);
  if (!match || value === '') return undefined;
  const [hours, minutes, seconds] = match.slice(1).map((part) => Number.parseInt(part ?? '0', 10));
  return ((hours ?? 0) * 3600 + (minutes ?? 0) * 60 + (seconds ?? 0)) * 1000;
}
