import { describe, expect, test } from 'vitest';
import { type SignedIdentity, startIdentity } from './identity.ts';
import { createTestAuthority, TRUST_DOMAIN } from './testing/authority.ts';
import type { Timers } from './timers.ts';

const TOOL = { kind: 'tool', namespace: 'team', tool: 'search', podUid: 'uid-1' } as const;

/** Timers whose sleeps a test ends one by one. */
function handTimers() {
  const sleeps: { ms: number; wake: () => void }[] = [];
  let asleep = Promise.withResolvers<void>();
  const timers: Timers = {
    now: Date.now,
    random: () => 0,
    sleep: (ms, signal) =>
      new Promise((resolve, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason), { once: true });
        sleeps.push({ ms, wake: resolve });
        asleep.resolve();
        asleep = Promise.withResolvers();
      }),
  };
  return {
    timers,
    sleeps,
    async untilAsleep(count: number) {
      while (sleeps.length < count) await asleep.promise;
    },
  };
}

function start(request: (csrPem: string, signal: AbortSignal) => Promise<SignedIdentity>) {
  const hand = handTimers();
  const events: string[] = [];
  const holder = startIdentity({
    request,
    trustDomain: TRUST_DOMAIN,
    log: (_level, event) => events.push(event),
    signal: new AbortController().signal,
    timers: hand.timers,
  });
  return { ...hand, holder, events };
}

describe('identity', () => {
  test('unready until the first certificate, then renewed at two thirds with a new key', async () => {
    const ca = createTestAuthority();
    const { holder, sleeps, untilAsleep } = start(async (csr) => ca.sign(csr, TOOL, 3_600_000));
    expect(holder.current()).toBeUndefined();
    await holder.ready;
    const first = holder.current();
    expect(first?.identity).toEqual(TOOL);
    await untilAsleep(1);
    expect(sleeps[0]?.ms ?? 0).toBeGreaterThan(2_390_000);
    expect(sleeps[0]?.ms ?? 0).toBeLessThanOrEqual(2_400_000);
    const changed = new Promise<void>((resolve) => holder.onChange(resolve));
    sleeps[0]?.wake();
    await changed;
    expect(holder.current()?.keyPem).not.toBe(first?.keyPem);
    holder.close();
  });

  test('[case 86] a signer that is late, lies or fails is asked again, with a back-off that grows and is bounded', async () => {
    const ca = createTestAuthority();
    const liar = createTestAuthority();
    let asked = 0;
    const { holder, sleeps, untilAsleep, events } = start(async (csr) => {
      asked++;
      switch (asked) {
        case 1:
          throw new Error('connection refused');
        case 2:
          return { ...ca.sign(csr, TOOL), identity: 'spiffe://oz0.test/edge' };
        case 3:
          return { ...ca.sign(csr, TOOL), trustBundle: liar.authority.certificatePem };
        case 4:
          return ca.sign(csr, TOOL, -1_000);
        case 5:
          return { ...ca.sign(csr, TOOL), certificate: ca.issue(TOOL).certificatePem };
        default:
          return asked < 20 ? Promise.reject(new Error('down')) : ca.sign(csr, TOOL);
      }
    });
    for (let at = 0; at < 19; at++) {
      await untilAsleep(at + 1);
      expect(holder.current()).toBeUndefined();
      sleeps[at]?.wake();
    }
    await holder.ready;
    expect(asked).toBe(20);
    const waits = sleeps.slice(0, 19).map((sleep) => sleep.ms);
    expect(waits.slice(0, 3)).toEqual([125, 250, 500]);
    expect(Math.max(...waits)).toBe(15_000);
    expect(events.filter((event) => event === 'identity.failed')).toHaveLength(19);
    holder.close();
  });

  test('close ends the loop and rejects who still waits', async () => {
    const { holder } = start(() => new Promise((_resolve, reject) => setTimeout(() => reject(new Error('late')), 10)));
    holder.close();
    await expect(holder.ready).rejects.toThrow('closed');
  });

  test('a certificate that ran out is shown no more', async () => {
    const ca = createTestAuthority();
    let late = 0;
    const holder = startIdentity({
      request: async (csr) => ca.sign(csr, TOOL, 60_000),
      trustDomain: TRUST_DOMAIN,
      log: () => {},
      signal: new AbortController().signal,
      timers: { now: () => Date.now() + late, random: () => 0, sleep: () => new Promise(() => {}) },
    });
    await holder.ready;
    expect(holder.current()).toBeDefined();
    late = 61_000;
    expect(holder.current()).toBeUndefined();
    holder.close();
  });
});
