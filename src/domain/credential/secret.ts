/**
 * The one type that holds a secret's value. Whatever turns it into text by accident (a template, JSON, a log, an
 * inspector) gets a mark; the value comes out of one method, whose name a reader can search for.
 */

export const SECRET_MARK = '[secret]';

const INSPECT = Symbol.for('nodejs.util.inspect.custom');

export class Secret {
  readonly #value: string;

  constructor(value: string) {
    this.#value = value;
  }

  /** The value itself: for the bytes that go to the host it is bound to, and for finding it in what comes back. */
  reveal(): string {
    return this.#value;
  }

  toString(): string {
    return SECRET_MARK;
  }

  toJSON(): string {
    return SECRET_MARK;
  }

  [Symbol.toPrimitive](): string {
    return SECRET_MARK;
  }

  [INSPECT](): string {
    return SECRET_MARK;
  }
}
