/** The condition Listed, and what status says of the listing: only ever what a sidecar really answered. */
import { LISTED_FUNCTIONS_MAX } from '../../api/tool.ts';
import type { SidecarStatus } from '../../domain/config/sidecar.ts';
import { writtenHash } from '../../domain/snapshot/snapshotHash.ts';
import type { Fact, Sensed } from '../../engine/contract.ts';
import { fails, holds, pending } from '../facts.ts';
import { describeTroubles, type SecretTrouble } from './credentials.ts';
import type { ToolPod } from './pods.ts';
import { ASKING, LISTED, NO_READY_POD, NOTHING_LISTED, SIDECAR_UNREACHABLE } from './reasons.ts';

const TYPE = 'Listed';
const NAME_MAX = 128;

/** @param secrets what pods say is wrong with secrets, for which the server may not run */
export function listed(
  pods: readonly ToolPod[],
  answer: Sensed<SidecarStatus>,
  secrets: readonly SecretTrouble[] = [],
): Fact {
  if (!pods.some(({ ready }) => ready)) {
    const why = secrets.length > 0 ? ` ${describeTroubles(secrets)}` : '';
    return pending(TYPE, NO_READY_POD, `No pod takes calls yet.${why}`);
  }
  if (answer.state === 'failed') return pending(TYPE, SIDECAR_UNREACHABLE, answer.problem);
  const listing = answer.state === 'ok' ? answer.value.listing : undefined;
  if (!listing) return pending(TYPE, ASKING, 'A pod is being asked for its listing.');
  const count = listing.functions.length;
  if (count === 0) return fails(TYPE, NOTHING_LISTED, 'The server lists no function.');
  return holds(TYPE, LISTED, `The server lists ${count} ${count === 1 ? 'function' : 'functions'}.`);
}

/** The listing for status: sorted, bounded, and with names that a terminal can show. */
export function listingStatus(answer: Sensed<SidecarStatus>): Record<string, unknown> | undefined {
  const listing = answer.state === 'ok' ? answer.value.listing : undefined;
  if (!listing) return undefined;
  const functions = listing.functions
    .map(({ name, kind }) => ({ name: printable(name), kind }))
    .sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
  return {
    hash: writtenHash(listing.hash) ?? printable(listing.hash),
    count: functions.length,
    functions: functions.slice(0, LISTED_FUNCTIONS_MAX),
  };
}

function printable(text: string): string {
  return [...text.replaceAll(/[\p{C}\p{Zl}\p{Zp}]/gu, '\ufffd')].slice(0, NAME_MAX).join('');
}
