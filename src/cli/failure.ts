/** What a person is told when a command cannot do what it was asked. */
import { ApiError } from '../engine/api-error.ts';

/** The command was asked for something that cannot be; its message says what can. */
export class UsageFailure extends Error {}

/** One paragraph; the API server's own words where it refused. */
export function wordsOf(error: unknown): string {
  if (!(error instanceof ApiError)) return error instanceof Error ? error.message : String(error);
  switch (error.code) {
    case 'notFound':
      return `${error.message}. \`oz0 calls --all\` and \`kubectl get tools\` show what there is; -n names another namespace.`;
    case 'conflict':
      return `It changed meanwhile, and nothing was written: look again. (${error.message})`;
    default:
      return error.message;
  }
}
