/**
 * The conditions of rules: CEL, by a library, with bounds on what judging one may cost whatever the arguments are. Pure.
 *
 * Where it differs from CEL: what is not in `args` reads as null, and so does what is in that, so that
 * `args.force == true` and `args.target.path == '/'` are false for a call without them, as their author means it, and not
 * an error; `has(args.force)` says whether it is there. An item past the end of a list stays an error. Of the
 * functions there are those that look, and none that make large texts; a pattern of `matches` is written out, so
 * that no argument brings one.
 */
import { type CelInput, celList, celMap, isCelError, parse, plan } from '@bufbuild/cel';
import { jsonView } from './jsonView.ts';
import { environment, FIELD, HAS, OVER, within } from './metered.ts';
import { compilePattern, type Pattern } from './pattern.ts';
import { type Node, typeOf, VARIABLES } from './types.ts';
import { Work } from './work.ts';

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

/** One call as conditions see it, with what judging them may cost together. */
export interface Subject {
  readonly variables: Readonly<Record<keyof Bindings, CelInput>>;
  readonly work: Work;
}

export type Compiled =
  | {
      readonly ok: true;
      readonly evaluate: (subject: Subject) => Truth;
      /** Names of the variables that it depends on. */
      readonly speaksOf: ReadonlySet<string>;
    }
  | { readonly ok: false; readonly problem: string };

const MAX_CHARACTERS = 2_048;
/** Macros within one another; each goes over all items of a list. */
const MAX_NESTING = 2;
/** Instructions of a pattern's program. */
const MAX_PATTERN = 1_000;

export function subjectOf(bindings: Bindings, work = new Work()): Subject {
  return { variables: new Variables(bindings, work), work };
}

/** Each is made when a condition asks for it: most ask for `args` alone. */
class Variables implements Readonly<Record<keyof Bindings, CelInput>> {
  readonly #bindings: Bindings;
  readonly #work: Work;
  #args: CelInput | undefined;

  constructor(bindings: Bindings, work: Work) {
    this.#bindings = bindings;
    this.#work = work;
  }

  get args(): CelInput {
    this.#args ??= jsonView(this.#bindings.args, this.#work);
    return this.#args;
  }
  get call(): CelInput {
    return mapOf(this.#bindings.call);
  }
  get kind(): string {
    return this.#bindings.kind;
  }
  get openWorld(): boolean {
    return this.#bindings.openWorld;
  }
  get agent(): CelInput {
    return mapOf(this.#bindings.agent);
  }
  get job(): CelInput {
    return mapOf(this.#bindings.job);
  }
  get labels(): CelInput {
    return celList(this.#bindings.labels);
  }
}

function mapOf(fields: object): CelInput {
  return celMap(new Map(Object.entries(fields)));
}

export function compileExpression(text: string): Compiled {
  try {
    if (text.length > MAX_CHARACTERS) return { ok: false, problem: `longer than ${MAX_CHARACTERS} characters` };
    const { expr } = parse(text);
    const type = typeOf(expr);
    if (expr === undefined || (type !== 'bool' && type !== 'any')) {
      return { ok: false, problem: 'it is not true or false' };
    }
    const found: Found = { patterns: new Map(), names: new Set() };
    rewrite(expr, 0, found);
    const program = plan(environment, expr);
    const { patterns } = found;
    const evaluate = ({ variables, work }: Subject): Truth =>
      within({ work, patterns }, () => {
        try {
          const result = program(variables);
          return typeof result === 'boolean' ? result : 'error';
        } catch {
          return 'error';
        }
      });
    return { ok: true, evaluate, speaksOf: new Set([...found.names].filter((name) => Object.hasOwn(VARIABLES, name))) };
  } catch (error) {
    return { ok: false, problem: wordsOf(error) };
  }
}

function wordsOf(error: unknown): string {
  const said = isCelError(error) || error instanceof Error ? error.message : String(error);
  return said.replaceAll(/\s+/g, ' ').slice(0, 200);
}

interface Found {
  readonly patterns: Map<string, Pattern>;
  /** Of variables, also of those that macros bring in. */
  readonly names: Set<string>;
}

/**
 * Makes the library's tree, in place, one whose every step is counted: fields and items are asked of functions of ours, and a
 * macro asks first for its items times its steps.
 * @returns how many steps it has
 */
function rewrite(node: Node | undefined, nesting: number, found: Found): number {
  if (node === undefined) return 0;
  const { exprKind } = node;
  const all = (nodes: readonly (Node | undefined)[], depth = nesting): number =>
    nodes.reduce((sum, each) => sum + rewrite(each, depth, found), 0);
  switch (exprKind.case) {
    case 'identExpr':
      found.names.add(exprKind.value.name);
      return 1;
    case 'selectExpr': {
      const { operand, field, testOnly } = exprKind.value;
      const steps = rewrite(operand, nesting, found);
      become(node, testOnly ? HAS : FIELD, [operand, constant('stringValue', field)]);
      return steps + 1;
    }
    case 'callExpr': {
      const { function: name, target, args } = exprKind.value;
      if (name === 'matches') readPattern(args[0], found);
      const steps = all([target, ...args]);
      if (name === '_[_]') become(node, FIELD, args);
      return steps + 1;
    }
    case 'listExpr':
      return all(exprKind.value.elements) + 1;
    case 'structExpr':
      return (
        all(
          exprKind.value.entries.flatMap(({ keyKind, value }) =>
            keyKind.case === 'mapKey' ? [keyKind.value, value] : [value],
          ),
        ) + 1
      );
    case 'comprehensionExpr': {
      if (nesting >= MAX_NESTING) throw new Error(`more than ${MAX_NESTING} macros over lists within one another`);
      const { iterRange, accuInit, loopCondition, loopStep, result } = exprKind.value;
      const around = all([iterRange, accuInit, result]);
      const steps = all([loopCondition, loopStep], nesting + 1);
      if (iterRange !== undefined) {
        const range = { ...iterRange };
        become(iterRange, OVER, [range, constant('int64Value', BigInt(steps))]);
      }
      return around + steps + 1;
    }
    default:
      return 1;
  }
}

function become(node: Node, name: string, args: readonly (Node | undefined)[]): void {
  node.exprKind = { case: 'callExpr', value: { function: name, args } } as Node['exprKind'];
}

function constant(form: string, value: string | bigint): Node {
  return { id: 0n, exprKind: { case: 'constExpr', value: { constantKind: { case: form, value } } } } as unknown as Node;
}

function readPattern(node: Node | undefined, { patterns }: Found): void {
  const kind = node?.exprKind;
  if (kind?.case !== 'constExpr' || kind.value.constantKind.case !== 'stringValue') {
    throw new Error('the pattern of matches must be written out');
  }
  const source = kind.value.constantKind.value;
  const pattern = compilePattern(source);
  if (pattern.size > MAX_PATTERN) throw new Error('the pattern of matches repeats too much');
  patterns.set(source, pattern);
}
