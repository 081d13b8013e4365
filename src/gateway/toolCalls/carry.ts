/**
 * Carries one call on as far as it goes: asks the table for the next move, makes it, and says what came of it. All that is
 * decided is in `domain/calls`; here are only the writes, the requests and their bounds.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Call, Learned } from '../../domain/calls/call.ts';
import { type Event, type Hand, learn } from '../../domain/calls/hand.ts';
import { nextMove, type Situation, type Told } from '../../domain/calls/nextMove.ts';
import type { KubeObject } from '../../engine/contract.ts';
import type { JsonObject, RpcError } from '../../mcp/wire/jsonrpc.ts';
import type { Attempted } from '../attempt.ts';
import type { Route } from '../catalog/route.ts';
import type { Decision } from '../decide.ts';
import { type Recorded, readToolCall, withChange, withClaim, withPhase, withPlace } from './toolCallObject.ts';
import type { ToolCallStore, Written } from './toolCallStore.ts';

/** What the tool said, where it said something. */
export type Body =
  | { readonly kind: 'result'; readonly result: JsonObject }
  | { readonly kind: 'error'; readonly error: RpcError };

export interface Carried {
  readonly told: Told;
  readonly recorded: Recorded | undefined;
  readonly body: Body | undefined;
  readonly learned: Learned | undefined;
  /** Of the attempt that this hand made. */
  readonly attempted: Attempted | undefined;
  /** Why the call does not go on, where what was decided does not hold any more. */
  readonly refused: Extract<Decision, { do: 'refuse' }> | undefined;
  /** What failed last, in its own words. */
  readonly problem: string | undefined;
}

/** What came of giving a call to the network. */
export interface Sent {
  readonly event: Extract<Event, { of: 'send' }>;
  readonly attempted: Attempted;
  readonly body?: Body;
  readonly refused?: Extract<Decision, { do: 'refuse' }>;
}

export interface Asked {
  readonly event: Extract<Event, { of: 'ask' }>;
  readonly body?: Body;
  readonly problem?: string;
  /** Asking again would say the same. */
  readonly hopeless?: boolean;
}

export interface Judged {
  readonly event: Extract<Event, { of: 'judge' }>;
  readonly refused?: Extract<Decision, { do: 'refuse' }>;
}

/** One call, and what can be done for it. */
export interface Errand {
  readonly namespace: string;
  readonly name: string;
  /** Pods that may take it now, the best first; none where the arguments are not known, or it is not ours to make. */
  readonly places: (tried: ReadonlySet<string>) => readonly Route[];
  /** Whether it would be refused now: then it is claimed for its end to be written down. */
  readonly refusedNow: (recorded: Recorded | undefined) => boolean;
  /** The object of a call that is not on record; `sender` is left out for one that waits. */
  readonly create?: (sender: Sender | undefined) => KubeObject;
  readonly judge: (recorded: Recorded) => Judged;
  readonly send: (recorded: Recorded, others: boolean) => Promise<Sent>;
  /** `own`: this hand made the attempt, and its outcome is lost. */
  readonly ask: (recorded: Recorded, question: { fence: boolean; own: boolean; waitMs: number }) => Promise<Asked>;
  readonly fetch: (recorded: Recorded) => Promise<Body | undefined>;
  /** How long it may wait on for what runs, and for a pod that does not answer, in milliseconds from now. */
  readonly patienceMs: number;
  readonly silenceMs: number;
  /** The client is gone: nobody waits for the answer. */
  readonly gone: () => boolean;
}

export interface Sender {
  readonly nonce: string;
  readonly notAfterMs: number;
  readonly place: Route;
}

export interface CarrierOptions {
  readonly store: ToolCallStore;
  /** Uid and node of this gateway's pod. */
  readonly self: { readonly pod: string; readonly node: string };
  readonly newNonce: () => string;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** How long after its claim an attempt may start. */
  readonly grantMs?: number;
  /** How long another pod may be asked after one that did not take the call. */
  readonly dialWindowMs?: number;
  /** How long the record may fail before a hand gives up. */
  readonly recordMs?: number;
}

export interface Carrier {
  readonly carry: (hand: Hand, errand: Errand, recorded?: Recorded) => Promise<Carried>;
  readonly newNonce: () => string;
  /** Whether an attempt with this mark is being made in this process. */
  readonly inFlight: (nonce: string) => boolean;
  readonly size: () => number;
  readonly closed: () => boolean;
  /** From now on a hand gives up at the first failure. */
  readonly close: () => void;
}

const GRANT_MS = 15_000;
const DIAL_WINDOW_MS = 2_000;
const RECORD_MS = 10_000;
const PAUSE_FIRST_MS = 50;
const PAUSE_LONGEST_MS = 1_000;
const LONGEST_WAIT_MS = 10_000;
/** More moves than any honest call takes: a bug must not turn for ever. */
const MOST_MOVES = 10_000;

export function createCarrier(options: CarrierOptions): Carrier {
  const { store, self, now } = options;
  const grantMs = options.grantMs ?? GRANT_MS;
  const recordMs = options.recordMs ?? RECORD_MS;
  const inFlight = new Map<string, Promise<void>>();
  let closed = false;

  async function carry(first: Hand, errand: Errand, found?: Recorded): Promise<Carried> {
    const startedMs = performance.now();
    const finished = Promise.withResolvers<void>();
    const tried = new Set<string>();
    let hand = first;
    let recorded = found;
    let body: Body | undefined;
    let attempted: Attempted | undefined;
    let refused: Carried['refused'];
    let problem: string | undefined;
    let failingSinceMs: number | undefined;
    let silentSinceMs: number | undefined;
    let dialUntilMs = 0;
    let hopeless = false;
    let pauseMs = PAUSE_FIRST_MS;

    const places = (): readonly Route[] => errand.places(tried);
    const situation = (): Situation => {
      const ms = performance.now();
      const silent = silentSinceMs !== undefined && ms - silentSinceMs > errand.silenceMs;
      return {
        nowMs: now(),
        self: self.pod,
        inFlight: (nonce) => inFlight.has(nonce),
        // Fencing what a living gateway is about to send would make its call fail; after its grant it does no harm.
        mayAct: () => true,
        canClaim: !closed && (places().length > 0 || errand.refusedNow(recorded)),
        elsewhere:
          ms < dialUntilMs && hand.learned?.reason !== 'busy' && places().some(({ podUid }) => !tried.has(podUid)),
        giveUp:
          hand.failures > 0 && (hopeless || closed || (failingSinceMs !== undefined && ms - failingSinceMs > recordMs)),
        patient: !closed && !errand.gone() && !silent && ms - startedMs < errand.patienceMs,
      };
    };
    const read = (object: KubeObject): Call | undefined => {
      const next = readToolCall(object);
      if (next === undefined) {
        hopeless = true;
        problem = 'its ToolCall cannot be read';
        return undefined;
      }
      recorded = next;
      return next.call;
    };
    /** What a write came to, as an event; what fails is counted against the hand's patience. */
    const told = (of: 'create' | 'claim' | 'place' | 'record', written: Written): Event => {
      if (written.came === 'written') {
        const call = read(written.object);
        return call === undefined ? { of, came: 'lost' } : { of, came: 'written', call };
      }
      if (written.came === 'conflict') return { of, came: 'conflict' };
      problem = written.problem;
      failingSinceMs ??= performance.now();
      if (written.came === 'refused') hopeless = true;
      return { of, came: 'lost' };
    };
    const held = (): Recorded => {
      if (recorded === undefined) throw new Error('there is no record');
      return recorded;
    };
    const best = (): Route => {
      const [route] = places();
      if (route === undefined) throw new Error('there is no pod');
      return route;
    };
    const enter = (): void => {
      inFlight.set(hand.nonce, finished.promise);
    };

    try {
      for (let moves = 0; moves < MOST_MOVES; moves += 1) {
        const move = nextMove(hand, situation());
        let event: Event;
        switch (move.do) {
          case 'create': {
            if (errand.create === undefined) throw new Error('nothing is to be created');
            let sender: Sender | undefined;
            if (hand.plan === 'send') {
              enter();
              sender = { nonce: hand.nonce, notAfterMs: wholeSecond(now() + grantMs), place: best() };
            }
            const created = await store.create(errand.create(sender));
            event = told('create', sender === undefined ? await showWaiting(store, created) : created);
            break;
          }
          case 'claim': {
            enter();
            const [place] = places();
            const claim = { holder: self.pod, nonce: hand.nonce, notAfterMs: wholeSecond(now() + grantMs) };
            const writing = withClaim(held(), { claim, node: self.node, place }, now());
            event = told('claim', await store.writeStatus(writing));
            break;
          }
          case 'place': {
            const place = best();
            event = told('place', await store.writeStatus(withPlace(held(), place)));
            break;
          }
          case 'record':
            event = told('record', await store.writeStatus(withChange(held(), move.change, now(), problem ?? '')));
            break;
          case 'read': {
            if (hand.failures > 0) await sleep(Math.min(PAUSE_FIRST_MS * 2 ** hand.failures, PAUSE_LONGEST_MS));
            const came = await store.read(errand.namespace, errand.name);
            if (came.came === 'read') {
              const call = read(came.object);
              event = call === undefined ? { of: 'read', came: 'failed' } : { of: 'read', came: 'read', call };
            } else {
              event = { of: 'read', came: came.came };
              if (came.came === 'failed') {
                problem = came.problem;
                failingSinceMs ??= performance.now();
              }
            }
            break;
          }
          case 'judge': {
            const judged = errand.judge(held());
            refused = judged.refused;
            event = judged.event;
            break;
          }
          case 'send': {
            const { place } = held().call;
            if (dialUntilMs === 0) dialUntilMs = performance.now() + (options.dialWindowMs ?? DIAL_WINDOW_MS);
            if (place !== undefined) tried.add(place);
            const sent = await errand.send(
              held(),
              places().some(({ podUid }) => !tried.has(podUid)),
            );
            attempted = { ...sent.attempted, dials: (attempted?.dials ?? 0) + sent.attempted.dials };
            body = sent.body;
            refused = sent.refused;
            event = sent.event;
            break;
          }
          case 'ask': {
            const left = Math.max(0, errand.patienceMs - (performance.now() - startedMs));
            const waitMs = Math.round(Math.min(left, LONGEST_WAIT_MS));
            const asked = await errand.ask(held(), { fence: move.fence, own: hand.stage === 'sent', waitMs });
            event = asked.event;
            body = asked.body ?? body;
            problem = asked.problem ?? problem;
            if (event.came === 'silent') silentSinceMs ??= performance.now();
            else silentSinceMs = undefined;
            break;
          }
          case 'fetch':
            body = await errand.fetch(held());
            event = { of: 'fetch', came: 'done' };
            break;
          case 'pause': {
            const other = inFlight.get(hand.call?.claim?.nonce ?? '');
            await Promise.race([sleep(pauseMs), ...(other === undefined || other === finished.promise ? [] : [other])]);
            pauseMs = Math.min(pauseMs * 2, PAUSE_LONGEST_MS);
            event = { of: 'pause', came: 'done' };
            break;
          }
          case 'tell':
          case 'rest': {
            const end = move.do === 'tell' ? move.told : 'ended';
            return { told: end, recorded, body, learned: hand.learned, attempted, refused, problem };
          }
        }
        hand = learn(hand, event);
        if (hand.failures === 0) failingSinceMs = undefined;
      }
      throw new Error('a call took too many moves');
    } finally {
      if (inFlight.get(hand.nonce) === finished.promise) inFlight.delete(hand.nonce);
      finished.resolve();
    }
  }

  return {
    carry,
    newNonce: options.newNonce,
    inFlight: (nonce) => inFlight.has(nonce),
    size: () => inFlight.size,
    closed: () => closed,
    close: () => {
      closed = true;
    },
  };
}

/** For people who look at the record; that it waits is so without it. */
async function showWaiting(store: ToolCallStore, created: Written): Promise<Written> {
  const recorded = created.came === 'written' ? readToolCall(created.object) : undefined;
  if (recorded === undefined) return created;
  const shown = await store.writeStatus(withPhase(recorded));
  return shown.came === 'written' ? shown : created;
}

/** As the record keeps it. */
function wholeSecond(ms: number): number {
  return Math.ceil(ms / 1_000) * 1_000;
}
