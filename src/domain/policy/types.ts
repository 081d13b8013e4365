/**
 * What an expression comes to, as far as that can be told without a call: the library evaluates, it does not check. Pure.
 */
import type { parse } from '@bufbuild/cel';
import { FUNCTION_NAMES } from './metered.ts';

export type Node = NonNullable<ReturnType<typeof parse>['expr']>;

/** `any`: only a call can tell. */
export type Type = 'bool' | 'number' | 'text' | 'list' | 'map' | 'null' | 'time' | 'type' | 'any';

/** Fields that a map is known to have; undefined: any. */
interface Variable {
  readonly type: Type;
  readonly fields?: Readonly<Record<string, Type>>;
}

const KINDS = ['readOnly', 'additive', 'destructive', 'undeclared'];

export const VARIABLES: Readonly<Record<string, Variable>> = {
  args: { type: 'map' },
  call: { type: 'map', fields: { tool: 'text', function: 'text', id: 'text' } },
  kind: { type: 'text' },
  openWorld: { type: 'bool' },
  agent: { type: 'map', fields: { name: 'text', namespace: 'text', serviceAccount: 'text' } },
  job: { type: 'map', fields: { id: 'text', startedBy: 'text', proved: 'bool' } },
  labels: { type: 'list' },
};

/** What a function takes, its target first, and what it makes; several forms. */
type Form = readonly [takes: readonly Type[], makes: Type];

const COMPARED: readonly Form[] = (['number', 'text', 'bool', 'time'] as const).map((type) => [[type, type], 'bool']);
const CALCULATED: readonly Form[] = [
  [['number', 'number'], 'number'],
  [['time', 'time'], 'time'],
];
const read = (makes: Type, ...from: readonly Type[]): readonly Form[] => from.map((type) => [[type], makes]);

const METHODS: Readonly<Record<string, readonly Form[]>> = {
  contains: [[['text', 'text'], 'bool']],
  startsWith: [[['text', 'text'], 'bool']],
  endsWith: [[['text', 'text'], 'bool']],
  matches: [[['text', 'text'], 'bool']],
  size: read('number', 'text', 'list', 'map'),
  charAt: [[['text', 'number'], 'text']],
  indexOf: [
    [['text', 'text'], 'number'],
    [['text', 'text', 'number'], 'number'],
  ],
  lastIndexOf: [
    [['text', 'text'], 'number'],
    [['text', 'text', 'number'], 'number'],
  ],
  lowerAscii: read('text', 'text'),
  upperAscii: read('text', 'text'),
  trim: read('text', 'text'),
  split: [
    [['text', 'text'], 'list'],
    [['text', 'text', 'number'], 'list'],
  ],
  substring: [
    [['text', 'number'], 'text'],
    [['text', 'number', 'number'], 'text'],
  ],
};

const FUNCTIONS: Readonly<Record<string, readonly Form[]>> = {
  '!_': read('bool', 'bool'),
  '-_': read('number', 'number'),
  '_<_': COMPARED,
  '_<=_': COMPARED,
  '_>_': COMPARED,
  '_>=_': COMPARED,
  '_+_': [...CALCULATED, [['text', 'text'], 'text'], [['list', 'list'], 'list']],
  '_-_': CALCULATED,
  '_*_': [[['number', 'number'], 'number']],
  '_/_': [[['number', 'number'], 'number']],
  '_%_': [[['number', 'number'], 'number']],
  '_&&_': [[['bool', 'bool'], 'bool']],
  '_||_': [[['bool', 'bool'], 'bool']],
  '@in': [
    [['any', 'list'], 'bool'],
    [['any', 'map'], 'bool'],
  ],
  '@not_strictly_false': [[['any'], 'bool']],
  size: read('number', 'text', 'list', 'map'),
  int: read('number', 'number', 'text', 'time'),
  uint: read('number', 'number', 'text'),
  double: read('number', 'number', 'text'),
  bool: read('bool', 'bool', 'text'),
  string: read('text', 'text', 'number', 'bool', 'time'),
  timestamp: read('time', 'time', 'text', 'number'),
  duration: read('time', 'time', 'text', 'number'),
  type: read('type', 'any'),
  dyn: read('any', 'any'),
};

const TYPE_NAMES: ReadonlySet<string> = new Set([
  'int',
  'uint',
  'double',
  'bool',
  'string',
  'bytes',
  'list',
  'map',
  'null_type',
  'type',
]);

/** Throws, in words for its author, what is wrong whatever the call is. */
export function typeOf(node: Node | undefined, own: ReadonlyMap<string, Type> = new Map()): Type {
  const { exprKind } = node ?? {};
  switch (exprKind?.case) {
    case 'constExpr':
      return typeOfConstant(exprKind.value.constantKind.case);
    case 'identExpr': {
      const { name } = exprKind.value;
      const variable = own.get(name) ?? variableOf(name)?.type ?? (TYPE_NAMES.has(name) ? 'type' : undefined);
      if (variable === undefined) throw new Error(`there is no ${name}`);
      return variable;
    }
    case 'selectExpr':
      return typeOfSelect(exprKind.value, own);
    case 'listExpr':
      for (const item of exprKind.value.elements) typeOf(item, own);
      return 'list';
    case 'structExpr':
      if (exprKind.value.messageName !== '') throw new Error(`there is no ${exprKind.value.messageName}`);
      for (const { keyKind, value } of exprKind.value.entries) {
        if (keyKind.case === 'mapKey') typeOf(keyKind.value, own);
        typeOf(value, own);
      }
      return 'map';
    case 'comprehensionExpr': {
      const { iterRange, iterVar, accuVar, accuInit, loopCondition, loopStep, result } = exprKind.value;
      const range = typeOf(iterRange, own);
      if (!fits(range, 'list') && !fits(range, 'map')) throw new Error(`${named(range)} has no items`);
      const inner = new Map(own).set(iterVar, 'any').set(accuVar, typeOf(accuInit, own));
      expect(typeOf(loopCondition, inner), 'bool');
      expect(typeOf(loopStep, inner), inner.get(accuVar) ?? 'any');
      return typeOf(result, inner);
    }
    case 'callExpr':
      return typeOfCall(exprKind.value, own);
    default:
      throw new Error('it cannot be read');
  }
}

type Of<Case> = Extract<Node['exprKind'], { readonly case: Case }>['value' &
  keyof Extract<Node['exprKind'], { readonly case: Case }>];

function typeOfSelect({ operand, field, testOnly }: Of<'selectExpr'>, own: ReadonlyMap<string, Type>): Type {
  const of = typeOf(operand, own);
  if (!fits(of, 'map') && of !== 'null') throw new Error(`${named(of)} has no field ${field}`);
  const name = operand?.exprKind.case === 'identExpr' ? operand.exprKind.value.name : '';
  const fields = own.has(name) ? undefined : variableOf(name)?.fields;
  if (fields !== undefined && !Object.hasOwn(fields, field)) throw new Error(`there is no ${name}.${field}`);
  return testOnly ? 'bool' : (fields?.[field] ?? 'any');
}

function typeOfCall(call: Of<'callExpr'>, own: ReadonlyMap<string, Type>): Type {
  const { function: name, target } = call;
  const values = target === undefined ? call.args : [target, ...call.args];
  const types = values.map((value) => typeOf(value, own));
  const [first = 'any', second = 'any', third = 'any'] = types;
  switch (name) {
    case '_?_:_':
      expect(first, 'bool');
      return second === third ? second : 'any';
    case '_[_]':
      if (!fits(first, 'map') && !fits(first, 'list')) throw new Error(`${named(first)} has no items`);
      return 'any';
    case '_==_':
    case '_!=_':
      if (first !== 'null' && second !== 'null' && !fits(first, second)) {
        throw new Error(`${named(first)} never equals ${named(second)}`);
      }
      expectKind(values);
      return 'bool';
  }
  const forms = target === undefined ? FUNCTIONS : METHODS;
  const known = Object.hasOwn(forms, name) ? (forms[name] ?? []) : [];
  if (known.length === 0 || (target !== undefined && !FUNCTION_NAMES.has(name))) {
    throw new Error(`there is no function ${name}`);
  }
  const fitting = known.filter(
    ([takes]) => takes.length === types.length && takes.every((type, at) => fits(types[at] ?? 'any', type)),
  );
  if (fitting.length === 0) throw new Error(`${spoken(name)} does not take ${types.map(named).join(' and ')}`);
  const made = new Set(fitting.map(([, makes]) => makes));
  const [only = 'any'] = made;
  return made.size === 1 ? only : 'any';
}

/** A kind that is misspelt would never hold. */
function expectKind(values: readonly Node[]): void {
  const about = values.some(({ exprKind }) => exprKind.case === 'identExpr' && exprKind.value.name === 'kind');
  for (const { exprKind } of about ? values : []) {
    if (exprKind.case !== 'constExpr' || exprKind.value.constantKind.case !== 'stringValue') continue;
    const said = exprKind.value.constantKind.value;
    if (!KINDS.includes(said)) throw new Error(`there is no kind ${JSON.stringify(said)}: ${KINDS.join(', ')}`);
  }
}

function variableOf(name: string): Variable | undefined {
  return Object.hasOwn(VARIABLES, name) ? VARIABLES[name] : undefined;
}

function typeOfConstant(form: string | undefined): Type {
  switch (form) {
    case 'boolValue':
      return 'bool';
    case 'int64Value':
    case 'uint64Value':
    case 'doubleValue':
      return 'number';
    case 'stringValue':
      return 'text';
    case 'nullValue':
      return 'null';
    default:
      throw new Error('bytes are not read');
  }
}

function fits(type: Type, wanted: Type): boolean {
  return type === wanted || type === 'any' || wanted === 'any';
}

function expect(type: Type, wanted: Type): void {
  if (!fits(type, wanted)) throw new Error(`${named(type)} stands where ${named(wanted)} must`);
}

const NAMES: Readonly<Record<Type, string>> = {
  bool: 'true or false',
  number: 'a number',
  text: 'a text',
  list: 'a list',
  map: 'a map',
  null: 'null',
  time: 'a time',
  type: 'a type',
  any: 'a value',
};

function named(type: Type): string {
  return NAMES[type];
}

function spoken(name: string): string {
  return name === '@in' ? 'in' : name.replaceAll('_', '');
}
