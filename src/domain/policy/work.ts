/**
 * What judging a call may cost, counted and not timed. A unit is one step of an expression, one item or key looked at, or
 * 64 characters gone over. Pure.
 */

/** Of all conditions of one side for one call. */
export const WORK_PER_SIDE = 250_000;

export class Work {
  #left: number;
  constructor(units: number = WORK_PER_SIDE) {
    this.#left = units;
  }

  get left(): number {
    return this.#left;
  }

  /** Throws where more is asked for than is left; from then on nothing is left. */
  charge(units: number): void {
    this.#left = units <= this.#left ? this.#left - units : 0;
    if (this.#left === 0) throw new RangeError('too much to judge');
  }
}

export const CHARACTERS_PER_UNIT = 64;
