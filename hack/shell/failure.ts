/** What a command says when it cannot go on: what failed, where its log is, and what a person can do about it. */
import { existsSync, readFileSync } from 'node:fs';

export class Failure extends Error {
  readonly hint: string | undefined;
  readonly log: string | undefined;

  constructor(message: string, about: { hint?: string | undefined; log?: string | undefined; cause?: unknown } = {}) {
    super(message, { cause: about.cause });
    this.name = 'Failure';
    this.hint = about.hint;
    this.log = about.log;
  }
}

/** The end of a log, where programs say why they stopped. */
export function tail(file: string, lines = 15): string {
  if (!existsSync(file)) return '';
  return readFileSync(file, 'utf8').trimEnd().split('\n').slice(-lines).join('\n');
}

/** Prints an error for a person. Returns the exit code. */
export function report(error: unknown): number {
  if (!(error instanceof Error)) {
    console.error(error);
    return 1;
  }
  if (error.name === 'AbortError') {
    console.error('\ninterrupted');
    return 130;
  }
  console.error(`\nerror: ${error.message}`);
  if (!(error instanceof Failure)) console.error(error.stack);
  for (let failure: unknown = error; failure instanceof Error; failure = failure.cause) {
    if (failure !== error) console.error(`because: ${failure.message}`);
    if (!(failure instanceof Failure)) continue;
    const end = failure.log === undefined ? '' : tail(failure.log);
    if (end !== '') console.error(`\n  ${end.replaceAll('\n', '\n  ')}\n\nwhole log: ${failure.log}`);
    if (failure.hint !== undefined) console.error(`what to do: ${failure.hint}`);
  }
  return 1;
}
