/**
 * The conditions of rules: CEL, by a library, with bounds on what one evaluation may cost whatever the arguments are. Pure.
 *
 * One deviation: a field of `args` that is not there reads as null, so that `args.force == true` is false for a call
 * without `force`, as its author means it; `has(args.force)` says whether it is there.
 */
import { type CelInput, CelScalar, celEnv, celMethod, isCelError, listType, mapType, parse, plan } from '@bufbuild/cel';
import { strings } from '@bufbuild/cel/ext';
import { compile as compilePattern } from './pattern.ts';

/** What a condition may speak of. */
export interface Bindings {
  readonly args: Readonly<Record<string, unknown>>;
  readonly call: { readonly tool: string; readonly function: string; readonly id: string };
  /** `readOnly`, `additive`, `destructive` or `undeclared`. */
  readonly kind: string;
  readonly openWorld: boolean;
  readonly agent: { readonly name: string; readonly namespace: string; readonly serviceAccount: string };
  readonly job: { readonly id: string; readonly startedBy: string; readonly proved: boolean };
  readonly labels: readonly string[];
}

/** `error`: it cannot be judged for these values. */
export type Truth = boolean | 'error';

export type Compiled =
  | { readonly ok: true; readonly evaluate: (bindings: Bindings) => Truth }
  | { readonly ok: false; readonly problem: string };

/** Steps within one another; each goes over all items of a list. */
const MAX_NESTING = 2;
/** Items of one list or map of the arguments, where an expression goes over items, by how deep it nests. */
const MAX_ITEMS: readonly number[] = [Number.POSITIVE_INFINITY, 1_000, 100];
/** Values in the arguments, at any depth. */
const MAX_VALUES = 10_000;
const MAX_DEPTH = 64;
/** Characters of a text that a regular expression reads. */
const MAX_MATCHED = 16_384;

const VARIABLES = {
  args: mapType(CelScalar.STRING, CelScalar.DYN),
  call: mapType(CelScalar.STRING, CelScalar.STRING),
  kind: CelScalar.STRING,
  openWorld: CelScalar.BOOL,
  agent: mapType(CelScalar.STRING, CelScalar.STRING),
  job: mapType(CelScalar.STRING, CelScalar.DYN),
  labels: listType(CelScalar.STRING),
};

const environment = celEnv({
  variables: VARIABLES,
  funcs: [
    ...strings,
    celMethod('matches', CelScalar.STRING, [CelScalar.STRING], CelScalar.BOOL, function (pattern) {
      if (this.length > MAX_MATCHED) throw new Error(`a text of more than ${MAX_MATCHED} characters is not matched`);
      return compilePattern(pattern)(String(this));
    }),
  ],
});

export function compileExpression(text: string): Compiled {
  try {
    const parsed = parse(text);
    const { names, nesting } = survey(parsed.expr, new Set());
    const unknown = names.find((name) => !Object.hasOwn(VARIABLES, name) && !TYPES.has(name));
    if (unknown !== undefined) return { ok: false, problem: `there is no ${unknown}` };
    if (nesting > MAX_NESTING)
      return { ok: false, problem: `more than ${MAX_NESTING} macros over lists within one another` };
    const program = plan(environment, parsed);
    const maxItems = MAX_ITEMS[nesting] ?? 0;
    const evaluate = (bindings: Bindings): Truth => {
      const args = bound(bindings.args, maxItems);
      if (args === undefined) return 'error';
      try {
        const result = program({ ...bindings, args } as never);
        return typeof result === 'boolean' ? result : 'error';
      } catch {
        return 'error';
      }
    };
    // What speaks of nothing needs no call to be seen wrong.
    const speaks = names.some((name) => Object.hasOwn(VARIABLES, name));
    if (!speaks && evaluate(NOTHING) === 'error') return { ok: false, problem: 'it is not true or false' };
    return { ok: true, evaluate };
  } catch (error) {
    return { ok: false, problem: wordsOf(error) };
  }
}

const NOTHING: Bindings = {
  args: {},
  call: { tool: '', function: '', id: '' },
  kind: '',
  openWorld: false,
  agent: { name: '', namespace: '', serviceAccount: '' },
  job: { id: '', startedBy: '', proved: false },
  labels: [],
};

function wordsOf(error: unknown): string {
  const said = isCelError(error) || error instanceof Error ? error.message : String(error);
  return said.replaceAll(/\s+/g, ' ').slice(0, 200);
}

type Node = Readonly<Record<string, unknown>>;

interface Survey {
  /** Names that no macro brought in. */
  readonly names: readonly string[];
  /** How deep macros nest. */
  readonly nesting: number;
}

/** The tree is the library's, in its published form. */
function survey(node: unknown, own: ReadonlySet<string>): Survey {
  if (typeof node !== 'object' || node === null) return { names: [], nesting: 0 };
  if (Array.isArray(node)) return merge(node.map((item) => survey(item, own)));
  const kind = (node as Node)['exprKind'];
  const { case: form, value } = (typeof kind === 'object' && kind !== null ? kind : {}) as Node;
  const inner = (typeof value === 'object' && value !== null ? value : {}) as Node;
  if (form === 'identExpr') {
    const name = String(inner['name']);
    return { names: own.has(name) ? [] : [name], nesting: 0 };
  }
  if (form === 'comprehensionExpr') {
    const within = new Set([...own, ...['iterVar', 'iterVar2', 'accuVar'].map((name) => String(inner[name]))]);
    const body = merge(['accuInit', 'loopCondition', 'loopStep', 'result'].map((part) => survey(inner[part], within)));
    return merge([survey(inner['iterRange'], own), { names: body.names, nesting: body.nesting + 1 }]);
  }
  const parts = form === undefined ? Object.values(node) : Object.values(inner);
  return merge(parts.map((part) => survey(part, own)));
}

const TYPES: ReadonlySet<string> = new Set([
  ...['int', 'uint', 'double', 'bool', 'string', 'bytes', 'list', 'map', 'null_type', 'type', '@result'],
]);

function merge(parts: readonly Survey[]): Survey {
  return { names: parts.flatMap(({ names }) => names), nesting: Math.max(0, ...parts.map(({ nesting }) => nesting)) };
}

/** Reads a missing key as null. */
class Fields extends Map<string, CelInput> {
  override get(key: string): CelInput | undefined {
    return super.has(key) ? super.get(key) : null;
  }
}

/** The arguments as CEL reads them; undefined where they hold more than an evaluation may go over. */
function bound(args: Readonly<Record<string, unknown>>, maxItems: number): CelInput | undefined {
  let values = 0;
  const read = (value: unknown, depth: number): CelInput => {
    values += 1;
    if (values > MAX_VALUES || depth > MAX_DEPTH) throw new RangeError('too much');
    switch (typeof value) {
      case 'string':
      case 'boolean':
        return value;
      case 'number':
        // JSON knows one kind of number, CEL two that do not add up; equal and order they do.
        return Number.isSafeInteger(value) ? BigInt(value) : value;
      case 'object': {
        if (value === null) return null;
        const items = Array.isArray(value) ? value.length : Object.keys(value).length;
        if (items > maxItems) throw new RangeError('too much');
        if (Array.isArray(value)) return value.map((item) => read(item, depth + 1));
        return new Fields(Object.entries(value).map(([key, item]) => [key, read(item, depth + 1)]));
      }
      default:
        return null;
    }
  };
  try {
    return read(args, 0);
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}
