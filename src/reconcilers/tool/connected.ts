/** The condition Connected: whether the pods have the credentials, and reach the remote server, that the Tool needs. */
import { PROBLEMS_MAX } from '../../api/tool.ts';
import type { SidecarStatus } from '../../domain/config/sidecar.ts';
import type { Fact, Sensed } from '../../engine/contract.ts';
import { fails, holds, pending } from '../facts.ts';
import {
  type Credentials,
  describeTroubles,
  type ProblemOfSecret,
  type SecretTrouble,
  secretTroubles,
} from './credentials.ts';
import {
  CONNECTED,
  CONNECTING,
  NOTHING_TO_CONNECT,
  SECRET_EMPTY,
  SECRET_MALFORMED,
  SECRET_MISSING,
  SERVER_UNREACHABLE,
} from './reasons.ts';

const TYPE = 'Connected';

const REASONS: Record<ProblemOfSecret, string> = {
  missing: SECRET_MISSING,
  empty: SECRET_EMPTY,
  malformed: SECRET_MALFORMED,
};

export interface ConnectedInput {
  readonly credentials: Credentials;
  readonly remote: boolean;
  /** The pods that were asked run what is written now. */
  readonly current: boolean;
  readonly listing: Sensed<SidecarStatus>;
  readonly trouble: Sensed<SidecarStatus>;
}

export function connected({ credentials, remote, current, listing, trouble }: ConnectedInput): Fact {
  if (!remote && credentials.secrets.length === 0) return holds(TYPE, NOTHING_TO_CONNECT, '');
  if (!current) return pending(TYPE, CONNECTING, 'Pods with these credentials are being made.');
  const troubles = secretTroubles(credentials, [listing, trouble]);
  if (troubles.length > 0) return fails(TYPE, reasonOf(troubles), describeTroubles(troubles));
  if (listing.state === 'ok') return holds(TYPE, CONNECTED, said(credentials));
  if (remote && trouble.state === 'ok' && trouble.value.phase === 'Down' && trouble.value.sandbox.holds) {
    return fails(TYPE, SERVER_UNREACHABLE, trouble.value.problem ?? 'The remote server does not answer.');
  }
  return pending(TYPE, CONNECTING, 'No pod has said yet that it has what it needs.');
}

function said({ secrets, connections }: Credentials): string {
  const through = connections.length > 0 ? ` Connections: ${connections.join(', ')}.` : '';
  return secrets.length > 0 ? `The pods have the secrets.${through}` : 'The remote server answers.';
}

/** The worst of them. */
export function reasonOf(troubles: readonly SecretTrouble[]): string {
  const worst = (['missing', 'empty', 'malformed'] as const).find((kind) =>
    troubles.some(({ problem }) => problem === kind),
  );
  return REASONS[worst ?? 'missing'];
}

/** What status says of them: which key of which Secret, never what it holds. */
export function secretStatus(
  credentials: Credentials,
  answers: readonly Sensed<SidecarStatus>[],
): readonly Record<string, string>[] {
  return secretTroubles(credentials, answers)
    .map(({ secret, key, problem }) => ({ secret, key, problem }))
    .slice(0, PROBLEMS_MAX);
}
