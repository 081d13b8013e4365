import { describe, expect, test } from 'vitest';
import { type Bindings, compileExpression, subjectOf, type Truth } from './expression.ts';
import { WORK_PER_SIDE, Work } from './work.ts';

const BINDINGS: Bindings = {
  args: {},
  call: { tool: 'github', function: 'merge', id: 'github.merge' },
  kind: 'destructive',
  openWorld: true,
  agent: { name: 'clerk', namespace: 'acme', serviceAccount: 'clerk' },
  job: { id: 'j-1', startedBy: 'jane', proved: true },
  labels: ['outside'],
};

function judge(when: string, args: Bindings['args'] = {}, work = new Work()): Truth {
  const compiled = compileExpression(when);
  if (!compiled.ok) throw new Error(compiled.problem);
  return compiled.evaluate(subjectOf({ ...BINDINGS, args }, work));
}

describe('[Y02] what a condition says of a call', () => {
  const deep = { a: { b: { c: 1 }, list: [{ x: 1 }, { x: null }], nothing: null }, text: 'x' };
  const TABLE: [string, Bindings['args'], Truth][] = [
    // What is missing reads as null, at any depth.
    ['args.force == true', {}, false],
    ['args.force == null', {}, true],
    ['args.force != true', {}, true],
    ['args.a.b == 1', {}, false],
    ['args.a.b == null', {}, true],
    ["args['a']['b'] == null", {}, true],
    ['args.a.b.c == 1', deep, true],
    ['args.a.b.d == null', deep, true],
    ['args.a.nothing.more == null', deep, true],
    ['args.a.list[0].x == 1', deep, true],
    ['args.a.list.exists(item, item.y == null)', deep, true],
    ['args.text.more == null', deep, 'error'],
    ['args.a.list[2].x == null', deep, 'error'],
    ['args.none[0] == null', deep, true],
    // Names that every object of JavaScript has are no arguments.
    ['args.constructor == null && args.__proto__ == null && args.toString == null', {}, true],
    ['has(args.constructor)', {}, false],
    ['args.__proto__ == 1', JSON.parse('{"__proto__": 1}'), true],
    ['has(args.a)', deep, true],
    ['has(args.a.b.c)', deep, true],
    ['has(args.a.b.d)', deep, false],
    ['has(args.none.b)', deep, false],
    ['has(args.a.nothing)', deep, true],
    ["'nothing' in args.a", deep, true],
    ["'none' in args.a", deep, false],
    ['has(args.text.more)', deep, 'error'],
    // Null is neither ordered nor true.
    ['args.number > 5', {}, 'error'],
    ['args.force', {}, 'error'],
    ['args.force || true', {}, true],
    ['args.force && false', {}, false],
    // JSON knows one kind of number.
    ['args.n == 7', { n: 7 }, true],
    ['args.n == 7.0', { n: 7 }, true],
    ['args.n == 7', { n: JSON.parse('7.0') }, true],
    ['args.n == 7', { n: JSON.parse('70e-1') }, true],
    ['args.n == 7.5', { n: 7.5 }, true],
    ['args.n == 7', { n: '7' }, false],
    ['args.n == 0', { n: -0 }, true],
    ['args.n > 5', { n: 5.5 }, true],
    ['args.n > 5.25', { n: 6 }, true],
    ['args.n >= 5 && args.n < 6', { n: 5 }, true],
    ['args.n > 5', { n: JSON.parse('123456789012345678901234567890') }, true],
    ['args.n < 0', { n: JSON.parse('-1e400') }, true],
    ['args.n > 9007199254740993', { n: 2 ** 60 }, true],
    ['args.n + 1 > 0', { n: 9_007_199_254_740_991 }, true],
    ['args.n in [1, 2, 3]', { n: 2 }, true],
    ['args.list == [1, 2]', { list: [1, 2] }, true],
    ["args.a == {'b': 1}", { a: { b: 1 } }, true],
    ["args.a == {'c': null}", { a: { b: null } }, false],
    ['size(args.list) == 2 && args.list.size() == 2', { list: [1, 2] }, true],
    [
      "args.text.startsWith('acme/') && args.text.endsWith('e') && args.text.contains('/s')",
      { text: 'acme/site' },
      true,
    ],
    ["args.text.lowerAscii().trim() == 'abc'", { text: ' ABC ' }, true],
    ["args.text.split(',').exists(each, each == 'b')", { text: 'a,b' }, true],
    [
      'args.list.map(each, each + 1).exists(each, each == 3) && args.list.filter(x, x > 1) == [2]',
      { list: [1, 2] },
      true,
    ],
    ['args.list.exists_one(x, x == 1) && args.list.all(x, x > 0)', { list: [1, 2] }, true],
    ["args.object.exists(key, key == 'b')", { object: { b: 1 } }, true],
    ["timestamp(args.at) < timestamp('2026-01-01T00:00:00Z')", { at: '2025-01-01T00:00:00Z' }, true],
    // Of the call.
    ["call.id == 'github.merge' && call.tool == 'github' && call.function == 'merge'", {}, true],
    ["kind == 'destructive' && openWorld", {}, true],
    ["agent.name == 'clerk' && agent.namespace == 'acme' && agent.serviceAccount == 'clerk'", {}, true],
    ["job.id == 'j-1' && job.startedBy == 'jane' && job.proved", {}, true],
    ["'outside' in labels && labels.size() == 1", {}, true],
    // It would take a backtracking engine longer than the sun will shine.
    ["args.text.matches('^(a+)+$')", { text: `${'a'.repeat(5_000)}b` }, false],
    ["args.text.matches('(a|aa)+c')", { text: 'a'.repeat(5_000) }, false],
    ["args.text.matches('b+')", { text: 'abbc' }, true],
    ["args.n.matches('b+')", { n: 1 }, 'error'],
  ];
  test.each(TABLE)('%s for %j: %j', (when, args, truth) => {
    expect(judge(when, args)).toBe(truth);
  });
});

describe('[case 47] what can be seen wrong without a call is said', () => {
  test.each([
    ['args.', /./],
    ['nosuch == 1', /there is no nosuch/],
    ['function.id == "x"', /./],
    ["agent.nmae == 'clerk'", /there is no agent.nmae/],
    ['kind.name', /a text has no field name/],
    ["kind == 'readonly'", /there is no kind "readonly"/],
    ['openWorld == 1', /true or false never equals a number/],
    ["job.proved == 'yes'", /never equals/],
    ['1 + 1', /not true or false/],
    ["'x'", /not true or false/],
    ['kind', /not true or false/],
    ['args', /not true or false/],
    ['args.list.map(x, x)', /not true or false/],
    ['args.a && 1', /does not take/],
    ['args.n > true && kind > 5', /> does not take a text and a number/],
    ['args.a.nosuch()', /there is no function nosuch/],
    ['args.a.startsWith()', /startsWith does not take/],
    ['args.a.startsWith(1)', /startsWith does not take/],
    ["args.a.replace('', args.b) == ''", /there is no function replace/],
    ["args.a.join(args.b) == ''", /there is no function join/],
    ["'%.100f'.format([args.a]) == ''", /there is no function format/],
    ['args.a.matches(args.b)', /must be written out/],
    ["args.a.matches('(')", /./],
    ["args.a.matches('(.{1,300}){1,3}(.{1,300}){1,3}')", /repeats too much/],
    ['args.a.all(x, x + 1)', /./],
    ['args.a.exists(x, args.b.exists(y, args.c.exists(z, x == z)))', /more than 2 macros/],
    ['openWorld.exists(x, true)', /has no items/],
    ['google.protobuf.Struct{} == args', /there is no/],
    [`args.a == '${'x'.repeat(2_048)}'`, /longer than 2048/],
    [`${'('.repeat(1_000)}true${')'.repeat(1_000)}`, undefined],
  ])('%s', (when, problem) => {
    const compiled = compileExpression(when);
    // Deep or long, it compiles or says why not; it does not throw.
    if (problem === undefined) return expect(typeof compiled.ok).toBe('boolean');
    expect(compiled).toMatchObject({ ok: false, problem: expect.stringMatching(problem) });
  });
});

/** Counts each look into the arguments, independent of what is charged. */
function counted(value: unknown, count: { looks: number }): unknown {
  if (typeof value !== 'object' || value === null) return value;
  const look = <T>(found: T): T => {
    count.looks += 1;
    return found;
  };
  return new Proxy(value, {
    get: (of, key) => look(counted(Reflect.get(of, key), count)),
    has: (of, key) => look(Reflect.has(of, key)),
    ownKeys: (of) => {
      const keys = Reflect.ownKeys(of);
      count.looks += keys.length;
      return keys;
    },
    getOwnPropertyDescriptor: (of, key) => look(Reflect.getOwnPropertyDescriptor(of, key)),
  });
}

describe('[I12] no argument makes a condition cost more than is stated', () => {
  const many = (count: number, item: unknown = 0) => Array.from({ length: count }, () => item);
  const wide = (count: number) => Object.fromEntries(many(count).map((_, at) => [`k${at}`, at]));
  const nested = (depth: number): unknown => {
    let value: unknown = 0;
    for (let at = 0; at < depth; at += 1) value = [value];
    return value;
  };
  const HOSTILE: [string, string, Bindings['args']][] = [
    ['a long list', 'args.a.exists(x, x == 1)', { a: many(1_000_000) }],
    ['two lists in one another', 'args.a.exists(x, args.b.exists(y, x + y == 1))', { a: many(5_000), b: many(5_000) }],
    ['a list searched for each of another', 'args.a.all(x, !(x in args.b))', { a: many(5_000, 1), b: many(5_000) }],
    [
      'equality of lists for each',
      'args.a.all(x, args.b == args.c)',
      { a: many(5_000), b: many(5_000), c: many(5_000) },
    ],
    ['many keys', 'args.a.all(key, key != "x" && key != "y" && key != "z")', { a: wide(30_000) }],
    ['many keys compared', 'args.a == args.b && args.b == args.a', { a: wide(30_000), b: wide(30_000) }],
    ['many small lists', 'args.a.all(x, x.all(y, y == 0))', { a: many(2_000, many(2_000)) }],
    ['a list grown', 'args.a.map(x, x).map(x, x) == []', { a: many(50_000) }],
    ['a list of lists grown', 'args.a.map(x, args.a) == args.a.map(x, args.a)', { a: many(1_000) }],
    ['a deep list compared', 'args.a == args.b', { a: nested(5_000), b: nested(5_000) }],
    ['a text in a text', 'args.a.contains(args.b)', { a: 'a'.repeat(1_000_000), b: `b${'a'.repeat(100_000)}` }],
    [
      'a text searched from its end',
      'args.a.lastIndexOf(args.b) > 0',
      { a: 'a'.repeat(1_000_000), b: 'a'.repeat(500_000) },
    ],
    ['a text cut to pieces', "args.a.split('').size() > 0", { a: 'a'.repeat(1_000_000) }],
    ['a text as a number', 'int(args.a) > 0', { a: '9'.repeat(1_000_000) }],
    ['a text as a date', 'timestamp(args.a) == timestamp(args.a)', { a: '9'.repeat(1_000_000) }],
    ['a long text matched', "args.a.matches('(a{1,30}){1,9}b')", { a: 'a'.repeat(1_000_000) }],
    ['a text for each item', "args.a.exists(x, args.b.contains('needle'))", { a: many(5_000), b: 'a'.repeat(100_000) }],
    [
      'texts added up',
      "args.a.exists(x, (args.b + args.b + args.b).contains('needle'))",
      { a: many(5_000), b: 'a'.repeat(90_000) },
    ],
  ];
  test.each(HOSTILE)('%s', (_, when, args) => {
    const count = { looks: 0 };
    const work = new Work();
    expect(judge(when, counted(args, count) as Bindings['args'], work)).toBe('error');
    // One unit is at most a few looks: a list's item is looked up and read.
    expect(count.looks).toBeLessThan(4 * WORK_PER_SIDE);
  });

  test('what usual conditions ask of usual arguments is far below', () => {
    const work = new Work();
    const args = {
      repo: 'acme/site',
      force: false,
      body: 'word '.repeat(2_000),
      paths: many(1_000, '/tmp/x'),
      rest: wide(100_000),
    };
    for (const when of [
      'args.force == true',
      "args.repo.startsWith('acme/')",
      "args.paths.all(path, path.startsWith('/tmp'))",
      "args.body.contains('secret')",
      "args.body.matches('[A-Z]{3}-[0-9]+')",
    ]) {
      expect(judge(when, args, work), when).not.toBe('error');
    }
    expect(work.left).toBeGreaterThan(WORK_PER_SIDE * 0.8);
  });

  test('what is not spoken of is not looked at', () => {
    const count = { looks: 0 };
    expect(judge('args.force == true', counted({ rest: many(100_000), force: true }, count) as Bindings['args'])).toBe(
      true,
    );
    expect(count.looks).toBeLessThan(10);
  });

  test('conditions share what there is: one that spends it leaves none to the next', () => {
    const work = new Work();
    expect(judge('args.a.exists(x, x == 1)', { a: many(1_000_000) }, work)).toBe('error');
    expect(work.left).toBe(0);
    expect(judge('args.b == 1', { b: 1 }, work)).toBe('error');
  });
});
