import { describe, expect, test } from 'vitest';
import type { FunctionKind } from '../config/sidecar.ts';
import { type CompiledPolicy, compilePolicy } from './compilePolicy.ts';
import { decidePolicy, isShown, type PolicyCall } from './decidePolicy.ts';
import { functionPolicy } from './functionPolicy.ts';
import { effectiveHints } from './hints.ts';
import { strictest, type Verdict } from './verdict.ts';

const VERDICTS: readonly Verdict[] = ['run', 'wait', 'refuse'];
const KINDS: readonly FunctionKind[] = ['ReadOnly', 'Additive', 'Destructive', 'Undeclared'];

const policy = (spec: object, name = 'default'): CompiledPolicy =>
  compilePolicy('ToolPolicy', {
    apiVersion: 'oz0.ai/v1alpha1',
    kind: 'ToolPolicy',
    metadata: { name, namespace: 'acme' },
    spec,
  });
const floor = (spec: object): CompiledPolicy =>
  compilePolicy('ClusterToolPolicy', {
    apiVersion: 'oz0.ai/v1alpha1',
    kind: 'ClusterToolPolicy',
    metadata: { name: 'floor' },
    spec,
  });
const rule = (name: string, verdict: Verdict, more: object = {}) => ({
  name,
  functions: ['github.merge'],
  do: verdict,
  ...more,
});

const CALL: PolicyCall = {
  args: {},
  agent: { name: 'clerk', namespace: 'acme', serviceAccount: 'clerk' },
  shadow: false,
  job: { proved: false },
  labels: [],
};

interface World {
  readonly kind?: FunctionKind;
  readonly openWorld?: boolean;
  readonly function?: string;
  readonly ours?: readonly CompiledPolicy[];
  readonly clusters?: readonly CompiledPolicy[];
}

const policyOf = ({ kind = 'Destructive', openWorld = true, ours = [], clusters = [], ...more }: World) =>
  functionPolicy({
    tool: 'github',
    function: more.function ?? 'merge',
    kind,
    openWorld,
    namespacePolicies: ours,
    clusterPolicies: clusters,
  });
const decide = (world: World, call: Partial<PolicyCall> = {}) => decidePolicy(policyOf(world), { ...CALL, ...call });

describe('[Y01] what a function says of itself decides, where nobody says more', () => {
  /** What the server's annotations say → the kind → what becomes of a call with no policy at all. */
  const TABLE: [unknown, FunctionKind, Verdict][] = [
    [undefined, 'Undeclared', 'wait'],
    [null, 'Undeclared', 'wait'],
    ['readOnlyHint', 'Undeclared', 'wait'],
    [[], 'Undeclared', 'wait'],
    [{}, 'Undeclared', 'wait'],
    [{ idempotentHint: true }, 'Undeclared', 'wait'],
    [{ openWorldHint: false }, 'Undeclared', 'wait'],
    [{ readOnlyHint: true }, 'ReadOnly', 'run'],
    [{ readOnlyHint: true, destructiveHint: false }, 'ReadOnly', 'run'],
    [{ readOnlyHint: false }, 'Undeclared', 'wait'],
    [{ readOnlyHint: false, destructiveHint: false }, 'Additive', 'run'],
    [{ destructiveHint: false }, 'Additive', 'run'],
    [{ destructiveHint: true }, 'Destructive', 'wait'],
    [{ readOnlyHint: false, destructiveHint: true }, 'Destructive', 'wait'],
    // They contradict each other: the strictest reading.
    [{ readOnlyHint: true, destructiveHint: true }, 'Destructive', 'wait'],
    // Somebody meant to say something, and nobody knows what.
    [{ readOnlyHint: 'true' }, 'Undeclared', 'wait'],
    [{ readOnlyHint: 1 }, 'Undeclared', 'wait'],
    [{ readOnlyHint: null }, 'Undeclared', 'wait'],
    [{ readOnlyHint: true, destructiveHint: 'false' }, 'Undeclared', 'wait'],
    [{ destructiveHint: 'false' }, 'Undeclared', 'wait'],
  ];
  test.each(TABLE)('[case 35] %j is %s: %s', (annotations, kind, verdict) => {
    const hints = effectiveHints({ annotations, annotationsCount: true });
    expect(hints.kind).toBe(kind);
    expect(decide({ kind: hints.kind }).do).toBe(verdict);
    // A remote server's word counts for nothing before it is approved [P06].
    expect(effectiveHints({ annotations, annotationsCount: false })).toEqual({
      kind: 'Undeclared',
      openWorld: true,
      idempotent: false,
    });
  });
});

describe('[Y02] [case 44] rules, kinds and the floor', () => {
  const run = (verdict: Verdict) => policy({ kinds: { destructive: verdict } });
  const clusters = (verdict: Verdict) => floor({ kinds: { destructive: verdict } });
  /** What holds → what becomes of a destructive function's call. */
  const TABLE: [string, World, Verdict][] = [
    ['nothing is said', {}, 'wait'],
    ['the kind is let run', { ours: [run('run')] }, 'run'],
    ['the kind is refused', { ours: [run('refuse')] }, 'refuse'],
    [
      'two policies of the namespace: the stricter',
      { ours: [run('run'), policy({ kinds: { destructive: 'refuse' } }, 'b')] },
      'refuse',
    ],
    [
      'a policy that says nothing of the kind takes nothing back',
      { ours: [run('run'), policy({ kinds: { undeclared: 'refuse' } }, 'b')] },
      'run',
    ],
    ['a rule lets a function run that its kind makes wait', { ours: [policy({ rules: [rule('a', 'run')] })] }, 'run'],
    [
      'a rule refuses what its kind lets run',
      { kind: 'ReadOnly', ours: [policy({ rules: [rule('a', 'refuse')] })] },
      'refuse',
    ],
    [
      'a rule of another function says nothing',
      { function: 'read', ours: [policy({ rules: [rule('a', 'run')] })] },
      'wait',
    ],
    ['a rule of the whole tool', { ours: [policy({ rules: [rule('a', 'run', { functions: ['github.*'] })] })] }, 'run'],
    ['a rule of all', { ours: [policy({ rules: [rule('a', 'run', { functions: ['*'] })] })] }, 'run'],
    [
      'a rule of a tool with a longer name',
      { ours: [policy({ rules: [rule('a', 'run', { functions: ['github_x.*'] })] })] },
      'wait',
    ],
    ['of two rules the stricter', { ours: [policy({ rules: [rule('a', 'run'), rule('b', 'wait')] })] }, 'wait'],
    ['in whatever order', { ours: [policy({ rules: [rule('a', 'refuse'), rule('b', 'run')] })] }, 'refuse'],
    [
      'a rule for functions that reach outside',
      { ours: [policy({ rules: [rule('a', 'refuse', { openWorld: true })] })] },
      'refuse',
    ],
    [
      'and this one does not',
      { openWorld: false, ours: [policy({ rules: [rule('a', 'refuse', { openWorld: true })] })] },
      'wait',
    ],
    [
      'the floor makes the kind wait, and no namespace loosens it',
      { ours: [run('run')], clusters: [clusters('wait')] },
      'wait',
    ],
    ['nor does a rule', { ours: [policy({ rules: [rule('a', 'run')] })], clusters: [clusters('wait')] }, 'wait'],
    ['the floor lets run: the namespace says', { ours: [run('refuse')], clusters: [clusters('run')] }, 'refuse'],
    ['a floor that says nothing has no opinion', { ours: [run('run')], clusters: [floor({})] }, 'run'],
    [
      'a rule of the floor',
      { ours: [run('run')], clusters: [floor({ rules: [rule('a', 'refuse', { functions: ['*'] })] })] },
      'refuse',
    ],
    [
      'a condition that does not compile refuses what it names',
      { ours: [policy({ rules: [rule('a', 'run', { when: 'args.' })] })] },
      'refuse',
    ],
    [
      'and nothing else [I9]',
      { function: 'read', kind: 'ReadOnly', ours: [policy({ rules: [rule('a', 'run', { when: 'args.' })] })] },
      'run',
    ],
    [
      'a policy that cannot be read refuses all',
      { kind: 'ReadOnly', ours: [policy({ kinds: { readOnly: 'perhaps' } })] },
      'refuse',
    ],
    [
      'a floor that cannot be read, likewise',
      { kind: 'ReadOnly', clusters: [floor({ kinds: { readOnly: 'perhaps' } })] },
      'refuse',
    ],
  ];
  test.each(TABLE)('%s', (_, world, verdict) => {
    expect(decide(world).do).toBe(verdict);
  });

  test('[I6] refuse beats wait beats run, whatever else is said: all mixtures of two sides', () => {
    const sets = VERDICTS.flatMap((a) => [[a], ...VERDICTS.map((b) => [a, b])]);
    for (const kind of KINDS) {
      for (const ours of [[], ...sets]) {
        for (const theirs of [[], ...sets]) {
          const spec = (verdicts: readonly Verdict[]) => ({
            rules: verdicts.map((verdict, at) => rule(`r${at}`, verdict)),
          });
          const verdict = decide({ kind, ours: [policy(spec(ours))], clusters: [floor(spec(theirs))] }).do;
          const byKind = kind === 'ReadOnly' || kind === 'Additive' ? 'run' : 'wait';
          const expected = strictest([strictest(ours) ?? byKind, strictest(theirs) ?? 'run']);
          expect(verdict, JSON.stringify({ kind, ours, theirs })).toBe(expected);
        }
      }
    }
  });
});

describe('[I6] whatever else is said', () => {
  const RULES = [[], ...VERDICTS.flatMap((a) => [[a], ...VERDICTS.map((b) => [a, b])])];
  const SAID = [undefined, ...VERDICTS];
  const spec = (byKind: Verdict | undefined, rules: readonly Verdict[]) => ({
    ...(byKind === undefined ? {} : { kinds: { destructive: byKind } }),
    rules: rules.map((verdict, at) => rule(`r${at}`, verdict)),
  });

  test('the verdict is never looser than what either side alone says: the cluster is a floor', () => {
    for (const ownKind of SAID) {
      for (const own of RULES) {
        const ours = [policy(spec(ownKind, own))];
        const alone = decide({ ours }).do;
        for (const theirKind of SAID) {
          for (const their of RULES) {
            const clusters = [floor(spec(theirKind, their))];
            const both = decide({ ours, clusters }).do;
            // What the floor says where the namespace lets all run.
            const floorAlone = decide({ ours: [policy({ kinds: { destructive: 'run' } })], clusters }).do;
            const said = JSON.stringify({ ownKind, own, theirKind, their });
            expect(strictest([both, alone]), said).toBe(both);
            expect(strictest([both, floorAlone]), said).toBe(both);
          }
        }
      }
    }
  });

  test('one more rule never loosens, where a rule or nobody has spoken before', () => {
    for (const side of ['ours', 'clusters'] as const) {
      const make = side === 'ours' ? policy : floor;
      for (const rules of RULES.filter((each) => side === 'clusters' || each.length > 0)) {
        for (const more of VERDICTS) {
          const before = decide({ [side]: [make(spec(undefined, rules))] }).do;
          const after = decide({ [side]: [make(spec(undefined, [...rules, more]))] }).do;
          expect(strictest([before, after]), JSON.stringify({ side, rules, more })).toBe(after);
        }
      }
    }
  });

  test('the order of policies and of rules says nothing', () => {
    const parts = [
      spec('run', ['wait']),
      { ...spec('wait', ['run']), deciders: { groups: ['a', 'b'] } },
      { ...spec(undefined, ['wait', 'run']), deciders: { roles: ['x'], groups: ['b', 'a'] } },
    ];
    const ours = parts.map((part, at) => policy(part, `p${at}`));
    const reversed = [...parts]
      .map((part, at) => policy({ ...part, rules: [...part.rules].reverse() }, `p${at}`))
      .reverse();
    expect(policyOf({ ours: reversed }).hash).toBe(policyOf({ ours }).hash);
    expect(decide({ ours: reversed })).toEqual(decide({ ours }));
  });
});

describe('[I9] what cannot be read denies what it governs, and only that', () => {
  const SPEC = {
    kinds: { readOnly: 'run', destructive: 'run', undeclared: 'perhaps' },
    deciders: { groups: [7] },
    newVersions: 'sometimes',
    aiLabel: 7,
    rules: [
      rule('good', 'wait', { functions: ['github.good'] }),
      { name: 'bad-do', functions: ['github.bad'], do: 'perhaps' },
      { name: 'bad-when', functions: ['github.worse', 'github.worst'], do: 'run', when: 7 },
      rule('bad-cel', 'run', { functions: ['github.cel'], when: 'args.' }),
    ],
  };
  const ours = [policy(SPEC)];
  test.each<[string, FunctionKind, object]>([
    ['other', 'ReadOnly', { do: 'run' }],
    ['other', 'Destructive', { do: 'run' }],
    ['other', 'Additive', { do: 'run' }],
    ['other', 'Undeclared', { do: 'refuse', reason: 'policy-broken', rule: 'default' }],
    ['good', 'Destructive', { do: 'refuse', reason: 'nobody', rule: 'default/good' }],
    ['bad', 'ReadOnly', { do: 'refuse', reason: 'policy-broken', rule: 'default/bad-do' }],
    ['worse', 'ReadOnly', { do: 'refuse', reason: 'policy-broken', rule: 'default/bad-when' }],
    ['worst', 'ReadOnly', { do: 'refuse', reason: 'policy-broken', rule: 'default/bad-when' }],
    ['cel', 'ReadOnly', { do: 'refuse', reason: 'policy-broken', rule: 'default/bad-cel' }],
  ])('%s, %s: %j', (name, kind, decision) => {
    expect(decide({ ours, function: name, kind })).toEqual(decision);
  });

  test('and says why', () => {
    const [compiled] = ours;
    expect(compiled?.broken).toBeUndefined();
    expect(compiled).toMatchObject({ newVersions: 'wait', aiLabel: undefined, aiLabelBroken: true });
    const fields = compiled?.problems.map(({ field }) => field) ?? [];
    for (const part of [
      'kinds.undeclared',
      'deciders',
      'newVersions',
      'aiLabel',
      'rules[1]',
      'rules[2]',
      'rules[bad-cel]',
    ])
      expect(
        fields.some((field) => field.includes(part)),
        `${part} in ${fields}`,
      ).toBe(true);
  });

  test.each([
    ['functions that cannot be read may be any', { name: 'a', functions: ['github.*', 7], do: 'run' }],
    ['or are none', { name: 'a', functions: [], do: 'run' }],
    ['a rule that is none', 'run'],
    ['or nothing', null],
  ])('%s: all of the namespace is refused', (_, bad) => {
    const broken = [policy({ rules: [bad] })];
    expect(decide({ ours: broken, kind: 'ReadOnly', function: 'any' })).toMatchObject({ reason: 'policy-broken' });
    expect(decide({ clusters: [floor({ rules: [bad] })], kind: 'ReadOnly' })).toMatchObject({
      reason: 'policy-broken',
    });
  });

  test.each([
    ['no object', 7],
    ['nothing', null],
    ['no spec', { metadata: { name: 'x' } }],
    [
      'a spec that is none',
      {
        ...{ apiVersion: 'oz0.ai/v1alpha1', kind: 'ToolPolicy', metadata: { name: 'x', namespace: 'y' } },
        spec: 'run',
      },
    ],
    [
      'rules that are no list',
      {
        ...{ apiVersion: 'oz0.ai/v1alpha1', kind: 'ToolPolicy', metadata: { name: 'x', namespace: 'y' } },
        spec: { rules: {} },
      },
    ],
    [
      'kinds that are no map',
      {
        ...{ apiVersion: 'oz0.ai/v1alpha1', kind: 'ToolPolicy', metadata: { name: 'x', namespace: 'y' } },
        spec: { kinds: 'run' },
      },
    ],
  ])('%s: nothing of it can be read, so everything is refused', (_, raw) => {
    const broken = compilePolicy('ToolPolicy', raw);
    expect(broken.broken).toMatch(/./);
    expect(decide({ ours: [broken], kind: 'ReadOnly' })).toMatchObject({ do: 'refuse', reason: 'policy-broken' });
  });
});

describe('[Y02] conditions', () => {
  const refuses = (when: string) => ({
    ours: [policy({ kinds: { destructive: 'run' }, rules: [rule('a', 'refuse', { when })] })],
  });
  const TABLE: [string, Partial<PolicyCall>, Verdict][] = [
    ['args.force == true', { args: { force: true } }, 'refuse'],
    ['args.force == true', { args: { force: false } }, 'run'],
    ['args.force == true', { args: {} }, 'run'],
    ['args.force == true', { args: { force: 'true' } }, 'run'],
    ['!has(args.reason)', { args: {} }, 'refuse'],
    ['has(args.a.b)', { args: {} }, 'run'],
    ['args.number == 7', { args: { number: 7 } }, 'refuse'],
    ['args.number > 5', { args: { number: 5.5 } }, 'refuse'],
    ['args.number > 5', { args: { number: 5 } }, 'run'],
    // It cannot be judged, so what is strict holds.
    ['args.number > 5', { args: { number: 'many' } }, 'refuse'],
    ['args.a.b == 1', { args: {} }, 'run'],
    ["args.repo.startsWith('acme/')", { args: { repo: 'acme/site' } }, 'refuse'],
    ["args.repo.matches('^(a+)+$')", { args: { repo: `${'a'.repeat(5_000)}b` } }, 'run'],
    ["args.repo.matches('a')", { args: { repo: 'a'.repeat(20_000) } }, 'refuse'],
    ["args.paths.exists(path, path == '/etc')", { args: { paths: ['/tmp', '/etc'] } }, 'refuse'],
    ["args.paths.all(path, path.startsWith('/tmp'))", { args: { paths: ['/etc'] } }, 'run'],
    ["'outside' in labels", { labels: ['outside'] }, 'refuse'],
    ["'outside' in labels", {}, 'run'],
    ["agent.name == 'clerk' && agent.namespace == 'acme'", {}, 'refuse'],
    ["call.id == 'github.merge' && call.tool == 'github' && call.function == 'merge'", {}, 'refuse'],
    ["kind == 'destructive' && openWorld", {}, 'refuse'],
    ['job.proved', { job: { proved: true, startedBy: 'jane' } }, 'refuse'],
    ["job.startedBy == 'jane'", { job: { proved: true, startedBy: 'jane' } }, 'refuse'],
    ['args.__proto__ == null', { args: {} }, 'refuse'],
    ['args.constructor == null', { args: {} }, 'refuse'],
  ];
  test.each(TABLE)('%s for %j: %s', (when, call, verdict) => {
    expect(decide(refuses(when), call).do).toBe(verdict);
  });

  test('a rule that lets run does not, where it cannot be judged', () => {
    const world = { ours: [policy({ rules: [rule('a', 'run', { when: 'args.number > 5' })] })] };
    expect(decide(world, { args: { number: 7 } }).do).toBe('run');
    expect(decide(world, { args: { number: 'many' } }).do).toBe('wait');
  });

  test.each(['args.', 'nosuch == 1', '1 + 1', "'x'", 'args.a.exists(x, args.b.exists(y, args.c.exists(z, x == z)))'])(
    '[case 47] %s is refused where it stands, and says why',
    (when) => {
      const [broken] = policy({ rules: [rule('a', 'run', { when })] }).rules;
      expect(broken?.problem).toMatch(/^when: ./);
      expect(decide({ ours: [policy({ rules: [rule('a', 'run', { when })] })] })).toMatchObject({
        do: 'refuse',
        reason: 'policy-broken',
        rule: 'default/a',
      });
    },
  );

  test('arguments that cost too much to judge: what is strict holds, what lets run does not, and each side for itself', () => {
    const args = { items: Array.from({ length: 300_000 }, () => 0) };
    const when = 'args.items.exists(x, x == 1)';
    expect(decide(refuses(when), { args: { items: [0] } }).do).toBe('run');
    expect(decide(refuses(when), { args }).do).toBe('refuse');
    expect(decide({ ours: [policy({ rules: [rule('a', 'run', { when })] })] }, { args }).do).toBe('wait');
    const ours = [policy({ rules: [rule('a', 'run', { when }), rule('b', 'run')] })];
    const clusters = [floor({ rules: [rule('c', 'refuse', { when: 'args.n == 1' })] })];
    expect(decide({ ours, clusters }, { args }).do).toBe('run');
    expect(decide({ ours, clusters }, { args: { ...args, n: 1 } }).do).toBe('refuse');
  });
});

describe('[Y02] who may decide', () => {
  const waits = (deciders: object, more: object = {}) => policy({ rules: [rule('a', 'wait', { deciders, ...more })] });
  test('each set that a rule names, and of waits by kind the policy’s own', () => {
    const groups = { groups: ['ops'], notStarter: false };
    expect(decide({ ours: [waits({ groups: ['ops'] }, { because: 'Merges.' })] })).toEqual({
      do: 'wait',
      rule: 'default/a',
      because: 'Merges.',
      deciders: [groups],
    });
    expect(decide({ ours: [policy({ deciders: { groups: ['ops'] } })] })).toEqual({ do: 'wait', deciders: [groups] });
    const both = decide({
      ours: [waits({ groups: ['ops'] })],
      clusters: [floor({ kinds: { destructive: 'wait' }, deciders: { roles: ['lead'] } })],
    });
    expect(both).toMatchObject({ deciders: [groups, { roles: ['lead'], notStarter: false }] });
  });

  test.each([
    ['nobody is in an empty set', { groups: [] }, false, 'refuse'],
    ['nor in two', { groups: [], roles: [] }, true, 'refuse'],
    ['nobody is known to be another than a starter whom nobody knows', { notStarter: true }, false, 'refuse'],
    ['a starter who is proved can be told from others', { notStarter: true }, true, 'wait'],
    ['anybody with the verb', {}, false, 'wait'],
  ])('[case 42] %s', (_, deciders, proved, verdict) => {
    const decision = decide({ ours: [waits(deciders)] }, { job: { proved, startedBy: 'jane' } });
    expect(decision.do).toBe(verdict);
    if (decision.do === 'refuse') expect(decision.reason).toBe('nobody');
  });
});

test('[Y05] a shadow calls what only reads, whatever the policy lets run', () => {
  const ours = [policy({ kinds: { additive: 'run', destructive: 'run', undeclared: 'run' } })];
  expect(KINDS.map((kind) => decide({ kind, ours }, { shadow: true }).do)).toEqual([
    'run',
    'refuse',
    'refuse',
    'refuse',
  ]);
});

describe('shown or not', () => {
  test.each<[string, World, boolean]>([
    ['refused for every call', { ours: [policy({ rules: [rule('a', 'refuse')] })] }, true],
    ['refused for some', { ours: [policy({ rules: [rule('a', 'refuse', { when: 'args.force' })] })] }, false],
    [
      'refused by kind, and let run for some',
      { ours: [policy({ kinds: { destructive: 'refuse' }, rules: [rule('a', 'run', { when: 'args.dry' })] })] },
      false,
    ],
    ['refused by kind', { ours: [policy({ kinds: { destructive: 'refuse' } })] }, true],
    [
      'refused by the floor',
      { ours: [policy({ rules: [rule('a', 'run')] })], clusters: [floor({ kinds: { destructive: 'refuse' } })] },
      true,
    ],
  ])('%s', (_, world, hidden) => {
    expect(policyOf(world).neverRuns).toBe(hidden);
  });
});

describe('[case 31] what is shown to an agent', () => {
  const clerk = { agent: CALL.agent, shadow: false };
  const other = { agent: { ...CALL.agent, name: 'other' }, shadow: false };
  const forClerk = { when: "agent.name == 'clerk'" };
  const bothWays = [rule('a', 'refuse', { when: 'args.force == true' }), rule('b', 'run', forClerk)];
  test.each<[string, World, boolean, boolean]>([
    ['nothing is said', {}, true, true],
    [
      'refused for some arguments',
      { ours: [policy({ rules: [rule('a', 'refuse', { when: 'args.x == 1' })] })] },
      true,
      true,
    ],
    [
      'refused for some jobs',
      { ours: [policy({ rules: [rule('a', 'refuse', { when: '!job.proved' })] })] },
      true,
      true,
    ],
    ['refused to an agent', { ours: [policy({ rules: [rule('a', 'refuse', forClerk)] })] }, false, true],
    [
      'refused by kind, and let run for an agent',
      { ours: [policy({ kinds: { destructive: 'refuse' }, rules: [rule('a', 'run', forClerk)] })] },
      true,
      false,
    ],
    [
      'let run for an agent, but for some arguments',
      { ours: [policy({ kinds: { destructive: 'refuse' }, rules: bothWays })] },
      true,
      false,
    ],
    [
      'refused to an agent by the floor',
      { clusters: [floor({ rules: [rule('a', 'refuse', forClerk)] })] },
      false,
      true,
    ],
    ['a policy that cannot be read', { ours: [policy({ rules: 7 })] }, false, false],
  ])('%s', (_, world, toClerk, toOther) => {
    const of = policyOf(world);
    expect([isShown(of, clerk), isShown(of, other)]).toEqual([toClerk, toOther]);
    // What is not shown cannot be called either.
    for (const [caller, shown] of [
      [clerk, toClerk],
      [other, toOther],
    ] as const) {
      for (const args of [{}, { x: 1 }, { x: 2, force: true }, { force: false }]) {
        for (const proved of [true, false]) {
          const { do: verdict } = decidePolicy(of, { ...CALL, ...caller, args, job: { proved } });
          if (!shown) expect(verdict).toBe('refuse');
        }
      }
    }
  });

  test('[Y05] to a shadow, what only reads', () => {
    expect(KINDS.map((kind) => isShown(policyOf({ kind }), { ...clerk, shadow: true }))).toEqual([
      true,
      false,
      false,
      false,
    ]);
  });
});

describe('[case 40] what an approval is for', () => {
  const base = { ours: [policy({ rules: [rule('a', 'wait', { when: 'args.x == 1' }), rule('b', 'run')] })] };
  const hash = policyOf(base).hash;
  test('the same in another order, and with another rule of another function', () => {
    const shuffled = policy({
      rules: [
        rule('b', 'run'),
        rule('a', 'wait', { when: 'args.x == 1' }),
        { name: 'c', functions: ['github.read'], do: 'refuse' },
      ],
    });
    expect(policyOf({ ours: [shuffled] }).hash).toBe(hash);
  });
  test.each<[string, World]>([
    ['a condition', { ours: [policy({ rules: [rule('a', 'wait', { when: 'args.x == 2' }), rule('b', 'run')] })] }],
    ['a verdict', { ours: [policy({ rules: [rule('a', 'wait', { when: 'args.x == 1' }), rule('b', 'wait')] })] }],
    [
      'who decides',
      {
        ours: [
          policy({
            rules: [rule('a', 'wait', { when: 'args.x == 1', deciders: { groups: ['x'] } }), rule('b', 'run')],
          }),
        ],
      },
    ],
    ['the floor', { ...base, clusters: [floor({ kinds: { destructive: 'wait' } })] }],
    ['the kind', { ...base, kind: 'Undeclared' }],
    ['openWorld', { ...base, openWorld: false }],
  ])('another with another %s', (_, world) => {
    expect(policyOf(world).hash).not.toBe(hash);
  });
});
