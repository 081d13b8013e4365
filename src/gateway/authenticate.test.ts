import { describe, expect, test } from 'vitest';
import { type AuthenticateOptions, createAuthenticator, type Review } from './authenticate.ts';

const REVIEWED: Review = {
  authenticated: true,
  user: {
    username: 'system:serviceaccount:acme:reviewer',
    extra: { 'authentication.kubernetes.io/node-name': 'node1', 'authentication.kubernetes.io/pod-uid': 'p' },
  },
};

function world(options: Partial<AuthenticateOptions> = {}) {
  const state = { nowMs: 1_000_000, asked: [] as string[], answer: REVIEWED as Review | Error };
  const { authenticate, size } = createAuthenticator({
    now: () => state.nowMs,
    review: async (token) => {
      state.asked.push(token);
      await Promise.resolve();
      if (state.answer instanceof Error) throw state.answer;
      return state.answer;
    },
    ...options,
  });
  return { state, size, ask: async (token: string) => authenticate(`Bearer ${token}`), authenticate };
}

function jwt(claims: object): string {
  return `e30.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.sig`;
}

describe('bearer token to principal', () => {
  test('a principal has namespace, account, pod and node', async () => {
    const { ask } = world();
    expect(await ask('t')).toEqual({
      ok: true,
      principal: { namespace: 'acme', serviceAccount: 'reviewer', podUid: 'p', node: 'node1' },
    });
  });

  test.each([
    undefined,
    '',
    'Bearer',
    'Bearer ',
    'Basic x',
    'Bearer a b',
    'Bearer t\u00e9',
    `Bearer ${'x'.repeat(20_000)}`,
  ])('no review for %j', async (header) => {
    const { state, authenticate } = world();
    expect(await authenticate(header)).toEqual({ ok: false, reason: 'unauthenticated' });
    expect(state.asked).toEqual([]);
  });

  test('a connection is who its header says, each time', async () => {
    const { state, authenticate } = world();
    const connection = {};
    for (const token of ['a', 'a', 'a', 'b', 'b', 'a']) await authenticate(`Bearer ${token}`, '', connection);
    expect(state.asked).toEqual(['a', 'b']);
    expect(await authenticate('Bearer', '', connection)).toEqual({ ok: false, reason: 'unauthenticated' });
    state.answer = { authenticated: false };
    state.nowMs += 10_000;
    expect(await authenticate('Bearer a', '', connection)).toEqual({ ok: false, reason: 'unauthenticated' });
  });

  test('kept for ten seconds from the question, then asked anew: a deleted pod’s token ends', async () => {
    const { state, ask } = world();
    await ask('t');
    state.nowMs += 9_999;
    await ask('t');
    expect(state.asked).toHaveLength(1);
    state.nowMs += 1;
    state.answer = { authenticated: false };
    expect(await ask('t')).toMatchObject({ ok: false });
    expect(state.asked).toHaveLength(2);
  });

  test('never past its own expiry, and an expired one is not asked about', async () => {
    const { state, ask } = world();
    const token = jwt({ exp: 1_003 });
    expect((await ask(token)).ok).toBe(true);
    state.nowMs += 3_000;
    expect(await ask(token)).toEqual({ ok: false, reason: 'unauthenticated' });
    expect(state.asked).toHaveLength(1);
    await ask(jwt({ exp: 'soon' }));
    await ask('e30.%%%.x'.replaceAll('%', '-'));
    expect(state.asked).toHaveLength(3);
  });

  test('refusals are kept shortly, failures not at all', async () => {
    const { state, ask } = world();
    state.answer = { authenticated: false };
    await ask('t');
    await ask('t');
    expect(state.asked).toHaveLength(1);
    state.nowMs += 1_500;
    state.answer = new Error('503');
    expect(await ask('t')).toEqual({ ok: false, reason: 'unavailable' });
    state.answer = REVIEWED;
    expect((await ask('t')).ok).toBe(true);
  });

  test('[case 10] equal tokens at once are asked about once; the cap turns others away', async () => {
    const gate = Promise.withResolvers<Review>();
    let asked = 0;
    const { ask } = world({
      maxReviews: 2,
      maxReviewsPerSource: 2,
      review: () => {
        asked += 1;
        return gate.promise;
      },
    });
    const same = Array.from({ length: 50 }, () => ask('t'));
    const second = ask('u');
    expect(await ask('v')).toEqual({ ok: false, reason: 'overloaded' });
    gate.resolve(REVIEWED);
    for (const answer of [...(await Promise.all(same)), await second]) expect(answer.ok).toBe(true);
    expect(asked).toBe(2);
  });

  test('ten thousand tokens: memory is bounded, the one in use stays', async () => {
    const { state, ask, size } = world({ maxEntries: 100 });
    for (let index = 0; index < 10_000; index += 1) await ask(`t${index}`);
    expect(size()).toBe(100);
    await ask('t9999');
    expect(state.asked).toHaveLength(10_000);
  });

  test.each([
    'jane',
    'system:node:node1',
    'system:serviceaccount:acme',
    'system:serviceaccount:a:b:c',
    'system:serviceaccount:A:b',
  ])('%s is no ServiceAccount', async (username) => {
    const { state, ask } = world();
    state.answer = { authenticated: true, user: { username, extra: {} } };
    expect(await ask('t')).toEqual({ ok: false, reason: 'not-a-service-account' });
  });
});

test('[I12] tokens from one address take only their share of the reviews: the others’ are reviewed', async () => {
  const answer = Promise.withResolvers<Review>();
  const { authenticate } = createAuthenticator({ review: () => answer.promise, maxReviews: 8, maxReviewsPerSource: 2 });
  const flood = Array.from({ length: 20 }, (_, at) => authenticate(`Bearer junk${at}`, '10.0.0.1'));
  const honest = authenticate('Bearer honest', '10.0.0.2');
  answer.resolve(REVIEWED);
  expect(await honest).toMatchObject({ ok: true });
  const answered = await Promise.all(flood);
  expect(answered.filter((each) => !each.ok && each.reason === 'overloaded')).toHaveLength(18);
  expect(await authenticate('Bearer later', '10.0.0.1')).toMatchObject({ ok: true });
});
