/**
 * JSON as CEL reads it, without a copy: a value is converted when a condition asks for it, and each that is looked at is
 * charged. Pure.
 */
import { type CelInput, type CelMap, celList, celMap } from '@bufbuild/cel';
import type { Work } from './work.ts';

/**
 * A missing key reads as null; `has` tells it from one that is there.
 * JSON knows one kind of number and CEL two: whole ones that are exact become ints, all others doubles. CEL compares both by value.
 */
export function jsonView(value: unknown, work: Work): CelInput {
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return value;
    case 'number':
      return Number.isSafeInteger(value) ? BigInt(value) : value;
    case 'object': {
      if (value === null) return null;
      if (!Array.isArray(value)) {
        const fields = new Fields(value as Readonly<Record<string, unknown>>, work);
        const map = celMap(fields);
        fieldsOf.set(map, fields);
        return map;
      }
      work.charge(value.length + 1);
      return celList(value.map((item) => jsonView(item, work)));
    }
    default:
      return null;
  }
}

const fieldsOf = new WeakMap<CelMap, Fields>();

/** Also of one whose value is null, which the library takes for missing. */
export function hasKey(map: CelMap, key: string): boolean {
  return (fieldsOf.get(map) ?? map).has(key);
}

class Fields implements ReadonlyMap<string, CelInput> {
  readonly #of: Readonly<Record<string, unknown>>;
  readonly #work: Work;
  /** So that a list is not gone over for each time that it is named. */
  readonly #kept = new Map<string, CelInput>();
  #keys: readonly string[] | undefined;

  constructor(of: Readonly<Record<string, unknown>>, work: Work) {
    this.#of = of;
    this.#work = work;
  }

  get(key: string): CelInput | undefined {
    this.#work.charge(1);
    if (typeof key !== 'string' || !Object.hasOwn(this.#of, key)) return null;
    const value = this.#of[key];
    if (typeof value !== 'object') return jsonView(value, this.#work);
    let kept = this.#kept.get(key);
    if (kept === undefined) {
      kept = jsonView(value, this.#work);
      this.#kept.set(key, kept);
    }
    return kept;
  }

  has(key: string): boolean {
    this.#work.charge(1);
    return typeof key === 'string' && Object.hasOwn(this.#of, key);
  }

  get size(): number {
    return this.#all().length;
  }

  *keys(): MapIterator<string> {
    yield* this.#all();
  }

  *values(): MapIterator<CelInput> {
    for (const key of this.#all()) yield this.get(key) ?? null;
  }

  *entries(): MapIterator<[string, CelInput]> {
    for (const key of this.#all()) yield [key, this.get(key) ?? null];
  }

  [Symbol.iterator](): MapIterator<[string, CelInput]> {
    return this.entries();
  }

  forEach(each: (value: CelInput, key: string, map: ReadonlyMap<string, CelInput>) => void): void {
    for (const [key, value] of this) each(value, key, this);
  }

  #all(): readonly string[] {
    if (this.#keys === undefined) {
      this.#keys = Object.keys(this.#of);
      this.#work.charge(this.#keys.length);
    }
    return this.#keys;
  }
}
