/**
 * One call in a world of two gateways, an API server, two pods of the tool with their journals, a network that loses and
 * delays, an agent that delivers it again, a person, and time. The gateways run the code that is shipped: `nextMove` and
 * `learn`. Everything around them is as bad as it may be: who is alive and whose turn it is are guesses that are wrong at will.
 */
import { type Call, type Change, changed, claimed, type Learned } from '../../../src/domain/calls/call.ts';
import { type Event, type Hand, learn, newDelivery, newUpkeep } from '../../../src/domain/calls/hand.ts';
import { type Move, nextMove, nextRule, type Situation, type Told } from '../../../src/domain/calls/nextMove.ts';
import type { Model, Step } from './explore.ts';

export interface Bounds {
  /** Sent at once, or asked of a person first. */
  readonly plan: 'send' | 'ask';
  /** How often the agent delivers the call, to any gateway. */
  readonly deliveries: number;
  /** Crashes, lost or late answers and writes, wrong guesses of unreachability, in all. */
  readonly faults: number;
  /** How often time passes a grant's end. */
  readonly ticks: number;
  readonly gateways: number;
  readonly pods: number;
  /** Hands that deal with the call at once, of all gateways together. */
  readonly hands: number;
  /** Attempts that gateways claim, at most. */
  readonly attempts: number;
  /** Whether what was decided may change once. */
  readonly policyChanges: boolean;
}

interface Attempt {
  readonly state: 'fenced' | 'running' | 'done';
  readonly effect: boolean;
  readonly learned?: Learned;
}

interface Pod {
  readonly gone: boolean;
  readonly attempts: Readonly<Record<number, Attempt>>;
}

interface Acting {
  readonly gateway: number;
  readonly hand: Hand;
  /** Waits for the answer to what it sent. */
  readonly sent: boolean;
  /** The sidecar's refusal, on its way. */
  readonly refused: boolean;
}

type Late =
  | { readonly of: 'write'; readonly call: Call; readonly version: number }
  | {
      readonly of: 'send';
      readonly pod: number;
      readonly attempt: number;
      readonly notAfter: number;
      readonly nonce: string;
    };

export interface State {
  readonly call: Call | undefined;
  readonly version: number;
  readonly pods: readonly Pod[];
  readonly late: readonly Late[];
  readonly acting: readonly Acting[];
  readonly time: number;
  readonly marks: number;
  readonly deliveries: number;
  readonly faults: number;
  /** The policy differs from the one under which the call was asked for. */
  readonly differs: boolean;
  readonly effects: number;
  /** Attempts that are on record as not made, now or before. */
  readonly notMade: readonly number[];
  readonly broken?: string;
}

const WHAT = 'merge 7';

/** What is explored; `next` may be replaced to see that a wrong one is found. */
export interface Explorable {
  readonly bounds: Bounds;
  readonly next: (hand: Hand, situation: Situation) => Move;
  /** Names of the rules that were used. */
  readonly used: Set<string>;
}

export function callModel(
  bounds: Bounds,
  next: Explorable['next'] = nextMove,
  used: Set<string> = new Set(),
): Model<State> {
  const explored: Explorable = { bounds, next, used };
  return {
    first: {
      call: undefined,
      version: 0,
      pods: Array.from({ length: bounds.pods }, () => ({ gone: false, attempts: {} })),
      late: [],
      acting: [],
      time: 0,
      marks: 0,
      deliveries: 0,
      faults: 0,
      differs: false,
      effects: 0,
      notMade: [],
    },
    steps: (state) =>
      state.broken === undefined
        ? stepsOf(state, explored).map(({ name, to }) => ({ name, to: forget(tellAll(to, explored)) }))
        : [],
    key: keyOf,
    problem,
    problemOf: (from, { to }) => problemOfWrite(from, to),
    ended: (state) => isOver(state, bounds),
  };
}

/** Whether a record is at its end, but for what only a person can do. */
function isOver({ call, acting, deliveries }: State, bounds: Bounds): boolean {
  if (acting.length > 0) return false;
  if (call === undefined) return deliveries > 0 || bounds.deliveries === 0;
  return call.phase !== 'Sending' && call.phase !== 'Waiting';
}

function problem(state: State): string | undefined {
  const { call, effects } = state;
  if (state.broken !== undefined) return state.broken;
  const allowed = 1 + (call?.answer === 'runAgain' ? 1 : 0);
  if (effects > allowed) return `it took effect ${effects} times, ${allowed} allowed`;
  if (call === undefined) return effects > 0 ? 'it took effect, and is not on record' : undefined;
  if (call.decision === 'deny' && effects > 0) return 'it took effect, and was denied';
  if (call.phase === 'Succeeded' && call.answer !== 'happened' && effects === 0)
    return 'on record as done, and was not';
  for (const attempt of state.notMade) {
    for (const pod of state.pods) {
      const made = pod.attempts[attempt];
      if (made?.effect === true || made?.state === 'running')
        return `attempt ${attempt} is on record as not made, and was`;
    }
  }
  return undefined;
}

const FINAL = new Set(['Succeeded', 'Failed', 'Refused', 'Stopped', 'Expired']);

/** An outcome on record stays. */
function problemOfWrite({ call: from }: State, { call: to }: State): string | undefined {
  if (from === undefined || from === to) return undefined;
  if (to === undefined) return 'the record is gone';
  if (to.attempt < from.attempt) return 'an attempt was forgotten';
  if (FINAL.has(from.phase) && !from.notMade && to !== from) {
    return `${from.phase} became ${to.phase}`;
  }
  if (from.phase === 'Unknown' && to.phase !== 'Unknown' && to.answer === undefined) {
    return `Unknown became ${to.phase}, and nobody said so`;
  }
  return undefined;
}

function stepsOf(state: State, explored: Explorable): Step<State>[] {
  const { bounds } = explored;
  const steps: Step<State>[] = [];
  const add = (name: string, to: State): void => {
    steps.push({ name, to });
  };
  const faulty = state.faults < bounds.faults;
  const fault = (name: string, to: State): void => {
    if (faulty) add(`${name} [fault]`, { ...to, faults: state.faults + 1 });
  };

  // The agent.
  for (let gateway = 0; gateway < bounds.gateways; gateway += 1) {
    const free = state.acting.length < bounds.hands;
    if (free && state.deliveries < bounds.deliveries) {
      const acting = { gateway, hand: newDelivery('', bounds.plan, WHAT), sent: false, refused: false };
      add(`G${gateway} gets the call`, {
        ...state,
        deliveries: state.deliveries + 1,
        acting: [...state.acting, acting],
      });
    }
    const { call } = state;
    const busy = state.acting.some((each) => each.gateway === gateway && each.hand.purpose === 'upkeep');
    if (free && call !== undefined && !busy) {
      const hand = newUpkeep('', stored(state));
      const useful = choices(hand, state, explored, gateway).some(({ move }) => move.do !== 'rest');
      if (useful) {
        add(`G${gateway} looks after it`, {
          ...state,
          acting: [...state.acting, { gateway, hand, sent: false, refused: false }],
        });
      }
    }
    if (state.acting.some((each) => each.gateway === gateway)) {
      fault(`G${gateway} is killed`, { ...state, acting: state.acting.filter((each) => each.gateway !== gateway) });
    }
  }
  // The gateways' hands.
  for (const [index, acting] of state.acting.entries()) act(state, explored, index, acting, add, fault);
  // The network.
  for (const [index, late] of state.late.entries()) {
    const rest = { ...state, late: state.late.filter((_, each) => each !== index) };
    if (late.of === 'write') {
      add('a late write lands', written(rest, late.call));
    } else add(`P${late.pod} gets attempt ${late.attempt}`, arrive(rest, late));
  }
  // The tool's pods.
  for (const [index, pod] of state.pods.entries()) {
    if (pod.gone) continue;
    const numbers = Object.keys(pod.attempts).map(Number);
    const running = numbers.filter((attempt) => pod.attempts[attempt]?.state === 'running');
    for (const attempt of running) {
      const put = (next: Attempt, more: Partial<State> = {}): State => ({
        ...state,
        ...more,
        pods: replaceAt(state.pods, index, { ...pod, attempts: { ...pod.attempts, [attempt]: next } }),
      });
      const { effect } = pod.attempts[attempt] ?? { effect: false };
      if (effect) add(`P${index} answers`, put({ state: 'done', effect, learned: { kind: 'result', reason: 'ok' } }));
      else add(`P${index} takes effect`, put({ state: 'running', effect: true }, { effects: state.effects + 1 }));
      fault(
        `P${index}'s process or sidecar dies`,
        put({ state: 'done', effect, learned: { kind: 'unknown', reason: 'died' } }),
      );
    }
    if (state.call !== undefined) {
      fault(`P${index} is gone`, {
        ...state,
        pods: replaceAt(state.pods, index, { gone: true, attempts: pod.attempts }),
      });
    }
  }
  // People, and time.
  const { call } = state;
  if (call?.phase === 'Waiting' && call.decision === undefined && bounds.plan === 'ask') {
    add('a person approves', written(state, { ...call, decision: 'approve' }));
    add('a person denies', written(state, { ...call, decision: 'deny' }));
  }
  if (call?.phase === 'Unknown' && call.answer === undefined) {
    add('a person says: happened', written(state, { ...call, answer: 'happened' }));
    add('a person says: run again', written(state, { ...call, answer: 'runAgain' }));
    add('a person says: stop', written(state, { ...call, answer: 'stop' }));
  }
  if (bounds.policyChanges && !state.differs && call !== undefined)
    add('the policy changes', { ...state, differs: true });
  if (state.time < bounds.ticks) add('time passes', { ...state, time: state.time + 1 });
  return steps;
}

/**
 * Whoever has nothing left but to tell, tells: it changes nothing that another could see, so that when it does is no matter.
 */
function tellAll(state: State, explored: Explorable): State {
  let now = state;
  for (const acting of state.acting) {
    if (acting.sent) continue;
    const all = choices(acting.hand, state, explored, acting.gateway);
    if (!all.every(({ move }) => move.do === 'tell' || move.do === 'rest')) continue;
    let broken: string | undefined;
    for (const { move, rule } of all) {
      explored.used.add(rule);
      if (move.do === 'tell') broken ??= problemOfTold(move.told, acting.hand, state);
    }
    now = { ...now, acting: now.acting.filter((each) => each !== acting), ...(broken === undefined ? {} : { broken }) };
  }
  return now;
}

/** What is late and can do nothing any more is not on its way. */
function forget(state: State): State {
  const late = state.late.filter((each) => {
    if (each.of === 'write') return each.version === state.version;
    const pod = state.pods[each.pod];
    const heard = state.acting.some(({ sent, hand }) => sent && hand.nonce === each.nonce);
    const over = state.time >= each.notAfter || pod?.attempts[each.attempt] !== undefined;
    return pod?.gone === false && (heard || !over);
  });
  return late.length === state.late.length ? state : { ...state, late };
}

interface Choice {
  readonly move: Move;
  readonly rule: string;
}

/** Every move that a hand may come to, whatever it guesses of the others. */
function choices(hand: Hand, state: State, { bounds, next }: Explorable, gateway: number): Choice[] {
  const found = new Map<string, Choice>();
  const marks = new Set(
    state.acting.filter((each) => each.gateway === gateway && each.hand !== hand).map((each) => each.hand.nonce),
  );
  const mayGo = (hand.call?.attempt ?? 0) < bounds.attempts;
  // Only guesses that a rule looks at in this phase.
  const sending = hand.call?.phase === 'Sending' && !hand.unsure;
  const guessed = sending ? 1 + 4 + (bounds.pods > 1 ? 8 : 0) : mayGo && hand.call !== undefined ? 2 : 0;
  const all = guessed + (hand.failures > 0 ? 16 : 0);
  for (let guess = 0; guess < 32; guess += 1) {
    if ((guess & ~all) !== 0) continue;
    const situation: Situation = {
      nowMs: state.time,
      self: `G${gateway}`,
      inFlight: (nonce) => marks.has(nonce),
      mayAct: () => (guess & 1) !== 0,
      canClaim: (guess & 2) !== 0,
      patient: (guess & 4) !== 0,
      elsewhere: (guess & 8) !== 0,
      giveUp: (guess & 16) !== 0,
    };
    const move = next(hand, situation);
    found.set(nameOf(move), { move, rule: nextRule(hand, situation).name });
  }
  return [...found.values()];
}

function nameOf(move: Move): string {
  if (move.do === 'record') return `record ${move.change.phase} ${move.change.reason}`;
  if (move.do === 'tell') return `tell ${move.told}`;
  return move.do === 'ask' && move.fence ? 'ask and fence' : move.do;
}

type Add = (name: string, to: State) => void;

function act(state: State, explored: Explorable, index: number, acting: Acting, add: Add, fault: Add): void {
  const { bounds } = explored;
  const who = `G${acting.gateway}.${index}`;
  const goOn = (to: State, event: Event, hand = acting.hand): State => ({
    ...to,
    acting: replaceAt(to.acting, index, { ...acting, hand: learn(hand, event), sent: false, refused: false }),
  });
  const gone = (to: State): State => ({ ...to, acting: to.acting.filter((_, each) => each !== index) });

  if (acting.sent) {
    const { call } = acting.hand;
    const made = state.pods[podOf(call)]?.attempts[call?.attempt ?? 0];
    if (acting.refused) {
      const learned: Learned = { kind: 'not-made', reason: 'refused' };
      add(`${who} hears: not made`, goOn(state, { of: 'send', came: 'learned', learned }));
    } else if (made?.state === 'done' && made.learned !== undefined && state.pods[podOf(call)]?.gone === false) {
      add(`${who} hears: ${made.learned.kind}`, goOn(state, { of: 'send', came: 'learned', learned: made.learned }));
    }
    fault(`${who} hears nothing`, goOn(state, { of: 'send', came: 'lost' }));
    // A request that is not answered ends some time, by the caller's timeout at the latest.
    if (state.pods[podOf(call)]?.gone === true) add(`${who} loses the pod`, goOn(state, { of: 'send', came: 'lost' }));
    return;
  }

  for (const { move, rule } of choices(acting.hand, state, explored, acting.gateway)) {
    explored.used.add(rule);
    const { hand } = acting;
    const say = `${who} ${move.do}`;
    switch (move.do) {
      case 'create':
      case 'claim':
      case 'place':
      case 'record': {
        const marks = move.do === 'create' || move.do === 'claim' ? state.marks + 1 : state.marks;
        const place = placeOf(move, hand);
        const marked =
          move.do === 'claim' || (move.do === 'create' && hand.nonce === '') ? { ...hand, nonce: `n${marks}` } : hand;
        const call = writeOf(move, marked, acting.gateway, place, state, bounds);
        const from = { ...state, marks };
        const version = hand.call === undefined ? 0 : versionOf(hand);
        const fits = move.do === 'create' ? state.call === undefined : version === state.version;
        const name = `${say}${move.do === 'record' ? ` ${move.change.phase}` : ''} P${place}`;
        if (fits) {
          const done = written(from, call);
          add(name, goOn(done, { of: move.do, came: 'written', call: stored(done) }, marked));
          fault(`${name}, the answer is lost`, goOn(done, { of: move.do, came: 'lost' }, marked));
          const late: Late = { of: 'write', call, version: state.version };
          fault(
            `${name}, it is late`,
            goOn({ ...from, late: [...from.late, late] }, { of: move.do, came: 'lost' }, marked),
          );
        } else {
          add(`${name}: conflict`, goOn(state, { of: move.do, came: 'conflict' }));
        }
        fault(`${name}: fails`, goOn(from, { of: move.do, came: 'lost' }, marked));
        break;
      }
      case 'read':
        if (state.call === undefined) add(`${say}: absent`, goOn(state, { of: 'read', came: 'absent' }));
        else add(say, goOn(state, { of: 'read', came: 'read', call: stored(state) }));
        fault(`${say}: fails`, goOn(state, { of: 'read', came: 'failed' }));
        break;
      case 'judge': {
        const learned: Learned = { kind: 'refused', reason: 'changed' };
        if (state.differs) add(`${say}: changed`, goOn(state, { of: 'judge', came: 'learned', learned }));
        else add(say, goOn(state, { of: 'judge', came: 'holds' }));
        break;
      }
      case 'send': {
        const { call } = hand;
        const pod = podOf(call);
        const late: Late = {
          of: 'send',
          pod,
          attempt: call?.attempt ?? 0,
          notAfter: call?.claim?.notAfterMs ?? Number.MAX_SAFE_INTEGER,
          nonce: hand.nonce,
        };
        const waits = { ...acting, hand: { ...hand, stage: 'sent' as const }, sent: true };
        add(`${say} to P${pod}`, {
          ...state,
          late: [...state.late, late],
          acting: replaceAt(state.acting, index, waits),
        });
        const learned: Learned = { kind: 'not-made', reason: 'unreachable' };
        const unsent = goOn(state, { of: 'send', came: 'learned', learned });
        if (state.pods[pod]?.gone === true) add(`${say}: not reached`, unsent);
        else fault(`${say}: not reached`, unsent);
        break;
      }
      case 'ask': {
        const index2 = podOf(hand.call);
        const pod = state.pods[index2];
        const attempt = hand.call?.attempt ?? 0;
        if (pod === undefined || pod.gone) {
          const learned: Learned = { kind: 'unknown', reason: 'pod-gone' };
          add(`${say}: gone`, goOn(state, { of: 'ask', came: 'learned', learned }));
          break;
        }
        const made = pod.attempts[attempt];
        const fenced: State =
          move.fence && made === undefined
            ? {
                ...state,
                pods: replaceAt(state.pods, index2, {
                  ...pod,
                  attempts: { ...pod.attempts, [attempt]: { state: 'fenced', effect: false } },
                }),
              }
            : state;
        const now = fenced.pods[index2]?.attempts[attempt];
        if (now === undefined) add(`${say}: unseen`, goOn(fenced, { of: 'ask', came: 'unseen' }));
        else if (now.state === 'running') add(`${say}: running`, goOn(fenced, { of: 'ask', came: 'running' }));
        else {
          const learned: Learned = now.learned ?? { kind: 'not-made', reason: 'never-sent' };
          add(`${say}: ${learned.kind}`, goOn(fenced, { of: 'ask', came: 'learned', learned }));
        }
        fault(`${say}: the answer is lost`, goOn(fenced, { of: 'ask', came: 'silent' }));
        fault(
          `${say}: given up`,
          goOn(state, { of: 'ask', came: 'learned', learned: { kind: 'unknown', reason: 'unreachable' } }),
        );
        break;
      }
      case 'fetch':
        add(say, goOn(state, { of: 'fetch', came: 'done' }));
        break;
      case 'pause':
        add(say, goOn(state, { of: 'pause', came: 'done' }));
        break;
      case 'tell': {
        const broken = problemOfTold(move.told, hand, state);
        const told = `${move.told}${move.told === 'ended' ? ` ${hand.call?.phase}` : ''}`;
        const to = gone(state);
        add(`${say} ${told}`, broken === undefined ? to : { ...to, broken });
        break;
      }
      case 'rest':
        add(say, gone(state));
        break;
    }
  }
}

/** What is told is on record, or is no outcome; and it is true. */
function problemOfTold(told: Told, hand: Hand, state: State): string | undefined {
  if (told === 'not-made') {
    const { call } = hand;
    const made = state.pods[podOf(call)]?.attempts[call?.attempt ?? 0];
    return made?.effect === true ? 'told as not made, and was' : undefined;
  }
  if (told !== 'ended') return undefined;
  const { call } = state;
  if (call === undefined) return 'told as ended, and is not on record';
  if (!FINAL.has(hand.call?.phase ?? '') && hand.call?.phase !== 'Unknown')
    return `told as ended in ${hand.call?.phase}`;
  const person = hand.call?.phase === 'Unknown' || hand.call?.notMade === true;
  if (!person && call.phase !== hand.call?.phase) return `told ${hand.call?.phase}, on record is ${call.phase}`;
  return undefined;
}

/** Whose start nobody allowed is broken: the sidecar keeps the grant and its journal, the rest is the gateways' to keep. */
function arrive(state: State, { pod: index, attempt, notAfter, nonce }: Extract<Late, { of: 'send' }>): State {
  const pod = state.pods[index];
  const refuse = (): State => ({
    ...state,
    acting: state.acting.map((each) => (each.sent && each.hand.nonce === nonce ? { ...each, refused: true } : each)),
  });
  if (pod === undefined || pod.gone) return state;
  const known = pod.attempts[attempt];
  if (known?.state === 'fenced') return refuse();
  // Delivered twice: it joins.
  if (known !== undefined) return state;
  if (state.time >= notAfter) return refuse();
  const { call } = state;
  let broken: string | undefined;
  if (call === undefined) broken = 'started, and not on record';
  else if (call.attempt < attempt) broken = 'started before it was on record';
  else if (call.decision === 'deny') broken = 'started, and denied';
  const started: Attempt = { state: 'running', effect: false };
  return {
    ...state,
    pods: replaceAt(state.pods, index, { ...pod, attempts: { ...pod.attempts, [attempt]: started } }),
    ...(broken === undefined ? {} : { broken }),
  };
}

function placeOf(move: Move, hand: Hand): number {
  if (move.do === 'record') return podOf(hand.call);
  if (move.do === 'place') return 1 - podOf(hand.call);
  return 0;
}

function writeOf(move: Move, hand: Hand, gateway: number, place: number, state: State, bounds: Bounds): Call {
  const claim = { holder: `G${gateway}`, nonce: hand.nonce, notAfterMs: state.time + 1 };
  const fresh: Call = {
    phase: 'Waiting',
    reason: '',
    what: WHAT,
    attempt: 0,
    again: false,
    notMade: false,
    // When time has passed as often as it does.
    expiresAtMs: bounds.ticks,
  };
  const { version: _version, ...call } = (hand.call ?? fresh) as Call & { version?: number };
  switch (move.do) {
    case 'create':
      return bounds.plan === 'ask' ? fresh : claimed(fresh, claim, `P${place}`);
    case 'claim':
      return claimed(call, claim, `P${place}`);
    case 'place':
      return { ...call, place: `P${place}` };
    default:
      return changed(call, (move as { change: Change }).change);
  }
}

/** A read gives the version with it, as the API server's objects carry theirs. */
function stored({ call, version }: State): Call {
  if (call === undefined) throw new Error('nothing is stored');
  return { ...call, version } as Call;
}

function versionOf({ call }: Hand): number {
  return (call as (Call & { version?: number }) | undefined)?.version ?? -1;
}

function written(state: State, call: Call): State {
  const notMade =
    state.call?.phase === 'Sending' && isNotMade(call) && !state.notMade.includes(call.attempt)
      ? [...state.notMade, call.attempt]
      : state.notMade;
  return { ...state, call, version: state.version + 1, notMade };
}

/** From Sending back to where it was claimed from, or known not to have been made. */
function isNotMade({ phase, notMade, again, answer }: Call): boolean {
  return notMade || phase === 'Waiting' || (phase === 'Unknown' && answer === 'runAgain' && !again);
}

function podOf(call: Call | undefined): number {
  return Number((call?.place ?? 'P0').slice(1));
}

function replaceAt<T>(all: readonly T[], index: number, value: T): readonly T[] {
  return all.map((each, at) => (at === index ? value : each));
}

/**
 * Equal for states that go on alike: versions count by their distance to the current one, marks by who else has them. Written
 * by hand, since it is most of the work of a search.
 */
function keyOf(state: State): string {
  const names = new Map<string, number>();
  const mark = (nonce: string | undefined): number => {
    if (nonce === undefined || nonce === '') return -1;
    const known = names.get(nonce) ?? names.size;
    names.set(nonce, known);
    return known;
  };
  const ofCall = (call: Call | undefined): string => {
    if (call === undefined) return '-';
    const { phase, attempt, claim, place, decision, answer, again, notMade } = call;
    const flags = (again ? 1 : 0) + (notMade ? 2 : 0);
    const by = claim === undefined ? '' : `${claim.holder}.${mark(claim.nonce)}.${claim.notAfterMs}`;
    return `${phase},${attempt},${by},${place ?? ''},${decision ?? ''},${answer ?? ''},${flags}`;
  };
  const parts = [ofCall(state.call), state.time, state.deliveries, state.faults, state.effects, state.differs ? 1 : 0];
  parts.push(state.notMade.join('.'), state.broken ?? '');
  for (const { gone, attempts } of state.pods) {
    parts.push(gone ? 'gone' : 'there');
    for (const [number, { state: at, effect, learned }] of Object.entries(attempts)) {
      parts.push(`${number}${at}${effect ? '!' : ''}${learned?.kind ?? ''}`);
    }
  }
  for (const { gateway, hand, sent, refused } of state.acting) {
    const { purpose, nonce, call, unsure, stage, learned, seen, fetched, failures, gone } = hand;
    const flags = [unsure, fetched, gone, sent, refused].map((flag) => (flag === true ? 1 : 0)).join('');
    const behind = call === undefined ? '' : state.version - versionOf(hand);
    parts.push(`@${gateway}${purpose}`, mark(nonce), behind === 0 ? '=' : `${behind}${ofCall(call)}`);
    parts.push(flags, stage, learned?.kind ?? '', seen ?? '', failures);
  }
  for (const late of state.late) {
    if (late.of === 'send') parts.push(`>${late.pod}.${late.attempt}.${late.notAfter}.${mark(late.nonce)}`);
    // One that names another version than the current one is refused, whatever it holds.
    else parts.push(late.version === state.version ? `~${ofCall(late.call)}` : '~');
  }
  return parts.join(';');
}
