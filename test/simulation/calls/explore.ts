/** Breadth-first search over the states of a model: every one that can be reached is checked, the shortest way to a bad one told. */

export interface Step<S> {
  readonly name: string;
  readonly to: S;
}

export interface Model<S> {
  readonly first: S;
  readonly steps: (state: S) => readonly Step<S>[];
  /** Equal for equal states only. */
  readonly key: (state: S) => string;
  /** What is wrong with a state, or undefined. */
  readonly problem: (state: S) => string | undefined;
  /** What is wrong with one step, or undefined. */
  readonly problemOf?: (from: S, step: Step<S>) => string | undefined;
  /** Where everything may end; from every state one of these must be reachable. */
  readonly ended: (state: S) => boolean;
}

export interface Explored {
  readonly states: number;
  readonly steps: number;
  readonly deepest: number;
  /** Names of the steps that lead to something bad, and what that is. */
  readonly counterexample?: { readonly problem: string; readonly path: readonly string[] };
}

/** @throws Error with more than `most` states: the bound was set too high to be explored whole */
export function explore<S>(model: Model<S>, most: number): Explored {
  const index = new Map<string, number>([[model.key(model.first), 0]]);
  const from: number[] = [-1];
  const by: string[] = [''];
  const depth: number[] = [0];
  const before: number[][] = [[]];
  const ends: number[] = [];
  let steps = 0;

  const pathTo = (at: number): string[] => {
    const path: string[] = [];
    for (let each = at; each > 0; each = from[each] ?? 0) path.push(by[each] ?? '');
    return path.reverse();
  };
  const bad = (problem: string, path: readonly string[]): Explored => ({
    states: index.size,
    steps,
    deepest: depth.at(-1) ?? 0,
    counterexample: { problem, path },
  });

  let frontier: S[] = [model.first];
  let base = 0;
  while (frontier.length > 0) {
    const next: S[] = [];
    for (const [offset, state] of frontier.entries()) {
      const at = base + offset;
      const problem = model.problem(state);
      if (problem !== undefined) return bad(problem, pathTo(at));
      if (model.ended(state)) ends.push(at);
      for (const step of model.steps(state)) {
        steps += 1;
        const wrong = model.problemOf?.(state, step);
        if (wrong !== undefined) return bad(wrong, [...pathTo(at), step.name]);
        const key = model.key(step.to);
        let known = index.get(key);
        if (known === undefined) {
          known = index.size;
          if (known >= most) throw new Error(`more than ${most} states`);
          index.set(key, known);
          from.push(at);
          by.push(step.name);
          depth.push((depth[at] ?? 0) + 1);
          before.push([]);
          next.push(step.to);
        }
        before[known]?.push(at);
      }
    }
    base += frontier.length;
    frontier = next;
  }

  const reaching = new Uint8Array(index.size);
  const left = [...ends];
  for (const at of left) reaching[at] = 1;
  for (let at = left.pop(); at !== undefined; at = left.pop()) {
    for (const each of before[at] ?? []) {
      if (reaching[each] === 1) continue;
      reaching[each] = 1;
      left.push(each);
    }
  }
  const stuck = reaching.indexOf(0);
  if (stuck !== -1) return bad('from here it can never end', pathTo(stuck));
  return { states: index.size, steps, deepest: depth.at(-1) ?? 0 };
}
