/**
 * The functions that conditions may use, each charged for what its arguments make it do, before it does it. Pure.
 */
import {
  type CelEnv,
  type CelInput,
  type CelMap,
  CelScalar,
  type CelValue,
  celEnv,
  celError,
  celFunc,
  celList,
  isCelList,
  isCelMap,
} from '@bufbuild/cel';
import { strings } from '@bufbuild/cel/ext';
import { hasKey } from './jsonView.ts';
import type { Pattern } from './pattern.ts';
import { CHARACTERS_PER_UNIT, type Work } from './work.ts';

/** Of functions of ours that expressions are rewritten to; no author can write such a name. */
export const FIELD = '@field';
export const HAS = '@has';
export const OVER = '@over';

/** What one evaluation is charged to. Evaluations do not wait, so there is one at a time. */
export interface Evaluation {
  readonly work: Work;
  readonly patterns: ReadonlyMap<string, Pattern>;
}
let current: Evaluation | undefined;

export function within<T>(evaluation: Evaluation, evaluate: () => T): T {
  current = evaluation;
  try {
    return evaluate();
  } finally {
    current = undefined;
  }
}

function evaluation(): Evaluation {
  if (current === undefined) throw new Error('nothing is being judged');
  return current;
}

/** Instructions of a pattern that one unit stands for. */
const STEPS_PER_UNIT = 16;
/** Characters of a text that is read as a number, a date or a duration. */
const LITERAL_MAX = 64;
const DEPTH_MAX = 64;

const { BOOL, DYN, INT, STRING } = CelScalar;

const own = [
  celFunc(FIELD, [DYN, DYN], DYN, (of, key) => fieldOf(of, key)),
  celFunc(HAS, [DYN, STRING], BOOL, (of, key) => {
    if (of === null) return false;
    if (isCelMap(of)) return hasKey(of, key);
    throw new Error('only maps have fields');
  }),
  celFunc(OVER, [DYN, INT], DYN, (range) => range as CelInput),
];

function fieldOf(of: unknown, key: unknown): CelInput {
  // What is missing has nothing in it.
  if (of === null) return null;
  if (isCelMap(of)) return of.get(key as Parameters<CelMap['get']>[0]) ?? null;
  if (isCelList(of) && (typeof key === 'bigint' || typeof key === 'number')) {
    const item = of.get(Number(key));
    if (item !== undefined) return item;
    throw new Error('the list has no such item');
  }
  throw new Error('only maps and lists have fields');
}

const plain = celEnv({ funcs: [...strings, ...own] });

/** What is charged for a call, its target first. Throws where too much is asked for. */
type Price = (values: readonly CelValue[], work: Work) => void;

const lengths = (values: readonly unknown[]): number =>
  values.reduce<number>((sum, value) => sum + (typeof value === 'string' ? value.length : 0), 0);
const linear: Price = (values, work) => work.charge(1 + Math.ceil(lengths(values) / CHARACTERS_PER_UNIT));
/** A step of its own for each character. */
const byCharacter: Price = (values, work) => work.charge(1 + lengths(values));
/** A text is searched for another: at worst each character is compared with each. */
const searching: Price = ([text, sought], work) => {
  const [n, m] = [lengths([text]), lengths([sought])];
  work.charge(1 + Math.ceil((n * Math.min(Math.max(m, 1), n)) / CHARACTERS_PER_UNIT));
};
const literal: Price = (values, work) => {
  if (lengths(values) > LITERAL_MAX) throw new RangeError('too long a text');
  work.charge(1);
};

/** As equality goes over both. */
function comparing(left: CelValue, right: CelValue, work: Work, depth = 0): void {
  if (depth > DEPTH_MAX) throw new RangeError('too deep');
  work.charge(1);
  if (typeof left === 'string' && typeof right === 'string') {
    if (left.length === right.length) work.charge(Math.ceil(left.length / CHARACTERS_PER_UNIT));
  } else if (isCelList(left) && isCelList(right)) {
    if (left.size !== right.size) return;
    for (let at = 0; at < left.size; at += 1) comparing(left.get(at) ?? null, right.get(at) ?? null, work, depth + 1);
  } else if (isCelMap(left) && isCelMap(right)) {
    if (left.size !== right.size) return;
    for (const [key, value] of left) comparing(value, right.get(key) ?? null, work, depth + 1);
  }
}

const PRICES: Readonly<Record<string, Price>> = {
  ...Object.fromEntries(
    ['_<_', '_<=_', '_>_', '_>=_', 'startsWith', 'endsWith', 'substring', 'charAt', 'trim', 'string', 'bool'].map(
      (name) => [name, linear],
    ),
  ),
  ...Object.fromEntries(['size', 'lowerAscii', 'upperAscii'].map((name) => [name, byCharacter])),
  ...Object.fromEntries(['contains', 'indexOf', 'lastIndexOf'].map((name) => [name, searching])),
  ...Object.fromEntries(['int', 'uint', 'double', 'timestamp', 'duration'].map((name) => [name, literal])),
  ...Object.fromEntries(
    ['!_', '-_', '_-_', '_*_', '_/_', '_%_', 'type', 'dyn', FIELD, HAS].map((name) => [name, linear]),
  ),
  '_+_': (values, work) => {
    linear(values, work);
    for (const value of values) if (isCelList(value)) work.charge(value.size);
  },
  '_==_': ([left = null, right = null], work) => comparing(left, right, work),
  '_!=_': ([left = null, right = null], work) => comparing(left, right, work),
  '@in': ([sought = null, among], work) => {
    work.charge(1);
    if (isCelList(among)) for (const item of among) comparing(item, sought, work);
  },
  split: (values, work) => {
    searching(values, work);
    byCharacter(values, work);
  },
  matches: ([text, pattern], work) => {
    const size = evaluation().patterns.get(String(pattern))?.size ?? Number.POSITIVE_INFINITY;
    work.charge(1 + Math.ceil((lengths([text]) * size) / STEPS_PER_UNIT));
  },
  [OVER]: ([range, steps], work) => {
    const size = isCelList(range) || isCelMap(range) ? range.size : 0;
    work.charge(1 + size * Number(steps));
  },
};

/** What an author may call. */
export const FUNCTION_NAMES: ReadonlySet<string> = new Set(Object.keys(PRICES));

type Found = NonNullable<ReturnType<CelEnv['funcs']['find']>>;

function metered(name: string): Found | undefined {
  const price = Object.hasOwn(PRICES, name) ? PRICES[name] : undefined;
  const found = plain.funcs.find(name);
  if (price === undefined || found === undefined) return undefined;
  return Object.create(found, {
    call: {
      value: (id: number, target: CelValue | undefined, args: CelValue[]) => {
        // What is thrown here ends the whole evaluation; what the function throws is an error of CEL's.
        price(target === undefined ? args : [target, ...args], evaluation().work);
        if (name === 'matches') return matched(id, target, args);
        // The library's own sum of lists is a chain, gone over anew for each link.
        const [left, right] = args;
        if (name === '@in' && typeof left === 'string' && isCelMap(right)) return hasKey(right, left);
        if (name === '_+_' && isCelList(left) && isCelList(right)) return celList([...left, ...right]);
        return found.call(id, target, args);
      },
    },
  }) as Found;
}

function matched(
  id: number,
  target: CelValue | undefined,
  [pattern]: readonly CelValue[],
): boolean | ReturnType<typeof celError> {
  const compiled = evaluation().patterns.get(String(pattern));
  if (typeof target !== 'string' || compiled === undefined) return celError('only texts match', id);
  return compiled.isFoundIn(target);
}

const kept = new Map([...FUNCTION_NAMES].map((name) => [name, metered(name)]));

/** The library's environment, with these functions and no others. */
export const environment: CelEnv = Object.create(plain, {
  funcs: { value: Object.create(plain.funcs, { find: { value: (name: string) => kept.get(name) } }) },
}) as CelEnv;
