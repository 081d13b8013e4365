/**
 * The tool's process over its lives: started when its walls hold and its launcher is here, restarted with a back-off,
 * stopped when a call does not end or a wall opens, drained when the pod ends. One process serves all callers.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { SidecarConfig, SidecarStatus } from '../domain/config/sidecar.ts';
import type { Snapshot } from '../domain/snapshot/snapshotListing.ts';
import { createStdioClient, type StdioClient, type StdioOutcome } from '../mcp/stdio.ts';
import type { JsonObject } from '../mcp/wire/jsonrpc.ts';
import { type CallRefusal, decideCall } from './decideCall.ts';
import type { Launcher, StartOrder, ToolExit } from './launcherSocket.ts';
import type { Log } from './log.ts';
import { createNoiseGate } from './noiseGate.ts';
import { hasOtherDefinition, isExpired, type SidecarCall, toolMeta } from './sidecarCall.ts';
import { createStderrTail } from './stderrTail.ts';
import { listFunctions, openToolSession, type ToolSession } from './toolSession.ts';

export interface ToolTiming {
  /** From the start of the process to its whole listing. */
  readonly startMs: number;
  readonly listMs: number;
  /** How long a call that was given up may go on. */
  readonly graceMs: number;
  /** From SIGTERM to SIGKILL. */
  readonly stopMs: number;
  readonly backoffFirstMs: number;
  readonly backoffLongestMs: number;
  /** A life this long makes the next back-off the first again. */
  readonly healthyMs: number;
  /** How long calls are taken after the pod was told to end, while gateways learn of it. */
  readonly drainWindowMs: number;
  /** Between two listings, however often the server says that it changed. */
  readonly relistMs: number;
}

export const TIMING: ToolTiming = {
  startMs: 120_000,
  listMs: 60_000,
  graceMs: 5_000,
  stopMs: 2_000,
  backoffFirstMs: 500,
  backoffLongestMs: 60_000,
  healthyMs: 60_000,
  drainWindowMs: 3_000,
  relistMs: 2_000,
};

/** The launcher kills and reaps within this, when it lives. */
const LAUNCHER_ANSWER_MS = 12_000;

export type CallOutcome =
  | StdioOutcome
  | { readonly kind: 'refused'; readonly reason: CallRefusal }
  | { readonly kind: 'no-such-function' }
  /** The call itself is over the limit; nothing of it was sent. */
  | { readonly kind: 'call-too-large' };

export interface ToolProcess {
  /** Why a call would be refused now, before anything of it is done. */
  readonly refusal: (call: SidecarCall) => CallOutcome | undefined;
  readonly call: (call: SidecarCall) => Promise<CallOutcome>;
  readonly listing: () => Snapshot | undefined;
  /** Calls back when the listing's hash changed, or the listing came or went. */
  readonly onListing: (listener: () => void) => () => void;
  readonly status: () => Pick<SidecarStatus, 'phase' | 'problem' | 'process' | 'server' | 'listing'>;
  /** A launcher dialled in. */
  readonly offer: (launcher: Launcher) => void;
  /** Whether the walls hold; false stops the process at once. */
  readonly setSandbox: (holds: boolean, problem: string | undefined) => void;
  /** What the tool's environment is made of changed: the process is started again, between calls. */
  readonly renew: () => void;
  /** The pod ends: drains, stops the tool, lets the launcher go. */
  readonly drain: () => void;
  /** Stops the process and every timer. */
  readonly close: () => Promise<void>;
}

interface Life {
  readonly launcher: Launcher;
  readonly client: StdioClient;
  readonly ended: Promise<ToolExit | undefined>;
  session: ToolSession | undefined;
  snapshot: Snapshot | undefined;
  condemned: boolean;
}

/** What else a process starts with, asked at each start. */
export interface ToolOutfit {
  /** Beside what was declared: the way out, and secrets. */
  readonly environment: () => Readonly<Record<string, string>>;
  /** Why no process may start now, such as a secret that is missing. */
  readonly problem: () => string | undefined;
}

export const NO_OUTFIT: ToolOutfit = { environment: () => ({}), problem: () => undefined };

export function createToolProcess(
  config: SidecarConfig,
  log: Log,
  timing: ToolTiming = TIMING,
  outfit: ToolOutfit = NO_OUTFIT,
): ToolProcess {
  const stderr = createStderrTail(log);
  const closing = new AbortController();
  const listeners = new Set<() => void>();
  const wakers = new Set<() => void>();
  let launcher: Launcher | undefined;
  let life: Life | undefined;
  let walls: { holds: boolean; problem: string | undefined } = {
    holds: false,
    problem: 'the sandbox is not proved yet',
  };
  let problem: string | undefined;
  let waitingBackoff = false;
  let starts = 0;
  let lastExit: string | undefined;
  let draining = false;
  let refusing = false;
  let backoffMs = timing.backoffFirstMs;

  const changed = (): void => {
    for (const wake of [...wakers]) wake();
  };
  /** Resolves when the condition is true; looked at whenever something changed. False: closing. */
  const until = async (condition: () => boolean): Promise<boolean> => {
    while (!condition()) {
      if (closing.signal.aborted) return false;
      await new Promise<void>((resolve) => {
        const wake = (): void => {
          wakers.delete(wake);
          resolve();
        };
        wakers.add(wake);
      });
    }
    return !closing.signal.aborted;
  };
  const told = (): void => {
    for (const listener of [...listeners]) listener();
  };

  async function run(): Promise<void> {
    const mayStart = () => walls.holds && outfit.problem() === undefined;
    while (await until(() => launcher !== undefined && (mayStart() || draining))) {
      const here = launcher;
      if (here === undefined) continue;
      if (draining) {
        here.quit();
        launcher = undefined;
        continue;
      }
      launcher = undefined;
      const begun = Date.now();
      const end = await live(here);
      // The launcher hangs up after each life, and dials again.
      here.close();
      if (closing.signal.aborted || draining) continue;
      if (end === 'planned' || Date.now() - begun >= timing.healthyMs) backoffMs = timing.backoffFirstMs;
      waitingBackoff = true;
      log('warn', 'the tool is started again', { afterMs: backoffMs });
      const cut = new AbortController();
      const stop = (): void => {
        if (draining) cut.abort();
      };
      wakers.add(stop);
      await sleep(backoffMs, undefined, { signal: AbortSignal.any([closing.signal, cut.signal]) }).catch(() => {});
      wakers.delete(stop);
      waitingBackoff = false;
      backoffMs = Math.min(backoffMs * 2, timing.backoffLongestMs);
    }
  }

  /** One process, from its start to its end. */
  async function live(here: Launcher): Promise<'planned' | 'unplanned'> {
    const ended = Promise.withResolvers<ToolExit | undefined>();
    const gate = createNoiseGate(here.pause, here.resume);
    const client = createStdioClient({
      write(bytes) {
        // A tool that reads nothing, while others wait for it, is as good as hung.
        if (!here.stdin(bytes)) here.close();
      },
      maxMessageBytes: config.maxMessageBytes,
      graceMs: timing.graceMs,
      onNoise: gate.add,
      onOverdue() {
        log('warn', 'a call did not end after it was cancelled: the tool is stopped once the others have ended');
        condemn(current);
      },
      onNotification(method) {
        if (method === 'notifications/tools/list_changed') relist();
      },
    });
    const current: Life = {
      launcher: here,
      client,
      ended: ended.promise,
      session: undefined,
      snapshot: undefined,
      condemned: false,
    };
    life = current;
    starts++;
    let exited = false;
    here.start(startOrder(config, here, outfit.environment()), {
      stdout: client.push,
      stderr: stderr.push,
      exited(exit) {
        exited = true;
        client.end();
        ended.resolve(exit);
      },
    });
    changed();

    let listingNow = false;
    let listAgain = false;
    function relist(): void {
      const { session } = current;
      if (listingNow || session === undefined) {
        listAgain = true;
        return;
      }
      listingNow = true;
      listAgain = false;
      void (async () => {
        const listed = await listFunctions(client, session, timing.listMs);
        // A good listing is not replaced by none.
        if (listed.ok) publish(listed.value);
        else if (!exited) log('warn', 'the changed listing could not be read', { problem: listed.problem });
        await sleep(timing.relistMs, undefined, { signal: closing.signal }).catch(() => {});
        listingNow = false;
        if (listAgain && !exited) relist();
      })();
    }
    function publish(snapshot: Snapshot): void {
      if (exited) return;
      const same = current.snapshot?.hash === snapshot.hash;
      current.snapshot = snapshot;
      for (const held of snapshot.heldBack) log('warn', 'a function is held back', held);
      if (!same) told();
    }

    let startProblem: string | undefined;
    const deadline = Date.now() + timing.startMs;
    const opened = await openToolSession(client, timing.startMs);
    const listed = opened.ok
      ? await listFunctions(client, opened.value, Math.max(1, Math.min(timing.listMs, deadline - Date.now())))
      : opened;
    if (opened.ok && listed.ok && !exited) {
      current.session = opened.value;
      problem = undefined;
      publish(listed.value);
      log('info', 'the tool is ready', { ...opened.value.server, functions: listed.value.functions.length });
      if (listAgain) relist();
    } else if (!exited) {
      startProblem = describeProblem(listed.ok ? '' : listed.problem, stderr.lines());
      problem = startProblem;
      log('warn', 'the tool did not start', { problem });
      halt(current, timing.stopMs);
    }
    changed();

    const exit = await ended.promise;
    gate.close();
    life = undefined;
    lastExit = describeExit(exit);
    const planned = current.condemned || draining || closing.signal.aborted || !walls.holds;
    problem = planned ? undefined : (startProblem ?? describeProblem(lastExit, stderr.lines()));
    log(planned ? 'info' : 'warn', 'the tool has ended', { exit: lastExit });
    if (current.snapshot !== undefined) told();
    changed();
    return planned ? 'planned' : 'unplanned';
  }

  /** Has the process stopped; a launcher that does not tell its end in time is hung up on, and then ends it too. */
  function halt(current: Life, graceMs: number): void {
    current.launcher.stop(graceMs);
    const timer = setTimeout(current.launcher.close, graceMs + LAUNCHER_ANSWER_MS);
    void current.ended.then(() => clearTimeout(timer));
  }

  /** Stops a process that holds a call which does not end, once nobody waits for another. */
  function condemn(current: Life): void {
    current.condemned = true;
    if (current.client.awaited() === 0) halt(current, timing.stopMs);
  }

  function prepare(asked: SidecarCall): { current: Life; params: JsonObject } | CallOutcome {
    const current = life;
    const { session, snapshot } = current ?? {};
    const decision = decideCall({
      refusing,
      expired: isExpired(asked, Date.now()),
      process:
        session !== undefined
          ? 'ready'
          : waitingBackoff || !walls.holds || outfit.problem() !== undefined
            ? 'down'
            : 'starting',
      condemned: current?.condemned ?? false,
      otherDefinition: hasOtherDefinition(asked, snapshot),
      running: current?.client.running() ?? 0,
      concurrency: config.concurrency,
    });
    if (decision.kind === 'refuse') return { kind: 'refused', reason: decision.reason };
    if (current === undefined || session === undefined) return { kind: 'refused', reason: 'down' };
    if (!snapshot?.functions.some((each) => each.name === asked.name)) return { kind: 'no-such-function' };
    const params = session.params({ name: asked.name, arguments: asked.arguments }, toolMeta(asked));
    if (Buffer.byteLength(JSON.stringify(params)) > config.maxMessageBytes) return { kind: 'call-too-large' };
    return { current, params };
  }

  async function call(asked: SidecarCall): Promise<CallOutcome> {
    const prepared = prepare(asked);
    if ('kind' in prepared) return prepared;
    const { current, params } = prepared;
    const outcome = await current.client.request({
      method: 'tools/call',
      params,
      timeoutMs: config.timeoutMs,
      signal: asked.signal,
      ...(asked.progress === undefined ? {} : { onProgress: asked.progress }),
    });
    if (current.condemned) condemn(current);
    changed();
    return outcome;
  }

  async function drain(): Promise<void> {
    if (draining) return;
    draining = true;
    log('info', 'draining');
    told();
    changed();
    if (life === undefined) {
      refusing = true;
      return;
    }
    const { signal } = closing;
    await sleep(timing.drainWindowMs, undefined, { signal }).catch(() => {});
    // It was called off; see `offer`.
    if (!draining) return;
    refusing = true;
    const idle = () => life?.session === undefined || life.client.awaited() === 0;
    await Promise.race([until(idle), sleep(config.timeoutMs + timing.graceMs, undefined, { signal }).catch(() => {})]);
    if (draining && life !== undefined) halt(life, timing.stopMs);
  }

  const running = run();
  return {
    refusal(asked) {
      const prepared = prepare(asked);
      return 'kind' in prepared ? prepared : undefined;
    },
    call,
    listing: () => (life?.session === undefined ? undefined : life.snapshot),
    onListing(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    status() {
      const { session, snapshot } = life ?? {};
      const phase = draining
        ? 'Draining'
        : session !== undefined
          ? 'Ready'
          : waitingBackoff || !walls.holds || outfit.problem() !== undefined
            ? 'Down'
            : 'Starting';
      const said = walls.holds ? (outfit.problem() ?? problem) : walls.problem;
      return {
        phase,
        ...(said === undefined || phase === 'Ready' ? {} : { problem: said }),
        process: { starts, ...(lastExit === undefined ? {} : { lastExit }) },
        ...(session === undefined ? {} : { server: session.server }),
        ...(session === undefined || snapshot === undefined
          ? {}
          : { listing: { hash: snapshot.hash, functions: snapshot.functions } }),
      };
    },
    offer(offered) {
      launcher = offered;
      if (draining && !offered.hello.terminating) {
        // A pod that ends starts no container again: the last launcher was told to end by somebody else, such as its tool.
        log('warn', 'the launcher was started again: the pod does not end');
        draining = false;
        refusing = false;
      }
      offered.gone.addEventListener('abort', () => {
        if (launcher === offered) launcher = undefined;
      });
      changed();
    },
    setSandbox(holds, why) {
      walls = { holds, problem: why };
      if (!holds && life !== undefined) halt(life, 0);
      changed();
    },
    renew() {
      if (life !== undefined) condemn(life);
      changed();
    },
    drain: () => void drain(),
    async close() {
      const last = life;
      if (last !== undefined) halt(last, timing.stopMs);
      if (last !== undefined) {
        await Promise.race([last.ended, sleep(timing.stopMs + 1_000, undefined, { ref: false })]);
        last.launcher.close();
      }
      closing.abort(new Error('the sidecar closes'));
      changed();
      await running;
    },
  };
}

/** The environment that the process sees, and no more. */
export function startOrder(
  config: SidecarConfig,
  launcher: Pick<Launcher, 'hello'>,
  more: Readonly<Record<string, string>> = {},
): StartOrder {
  const { path, home, lang } = launcher.hello;
  return {
    argv: config.argv,
    env: {
      ...(path === '' ? {} : { PATH: path }),
      // The root is read-only: a home there is none.
      HOME: home === '' || home === '/' ? '/tmp' : home,
      LANG: lang === '' ? 'C.UTF-8' : lang,
      TMPDIR: '/tmp',
      ...config.env,
      // Last, so that no declared variable stands for a secret or turns the way out away.
      ...more,
    },
    ...(config.cwd === undefined ? {} : { cwd: config.cwd }),
  };
}

function describeExit(exit: ToolExit | undefined): string {
  if (exit === undefined) return 'the connection to its launcher broke';
  if (exit.problem !== undefined) return exit.problem.slice(0, 500);
  return exit.signal === undefined ? `exited with code ${exit.code ?? '?'}` : `was ended by ${exit.signal}`;
}

/** For a person, in a condition: what happened, and what the tool last said of it. */
function describeProblem(what: string, lines: readonly string[]): string {
  const tail = lines.slice(-5).join(' | ');
  return (tail === '' ? what : `${what}; stderr: ${tail}`).slice(0, 1_000);
}
