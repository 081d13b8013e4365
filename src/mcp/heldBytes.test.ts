import { describe, expect, test } from 'vitest';
import { createHeldBytes } from './heldBytes.ts';

describe('room for answers', () => {
  function world(perKey = 10, total = 20) {
    const held = createHeldBytes({ perKey, total });
    const granted: string[] = [];
    const ask = (key: string, name: string, bytes = 6) => held.open(key).reserve(bytes, () => granted.push(name));
    return { held, granted, ask };
  }

  test('is granted in turn, as others give theirs back', () => {
    const { granted, ask, held } = world();
    const first = ask('a', 'a1');
    const second = ask('a', 'a2');
    const third = ask('a', 'a3');
    expect(granted).toEqual(['a1']);
    first.give();
    first.give();
    expect(granted).toEqual(['a1', 'a2']);
    third.give();
    second.give();
    expect(granted).toEqual(['a1', 'a2']);
    expect(held.total()).toBe(0);
  });

  test('one key’s crowd leaves another’s room alone', () => {
    const { granted, ask } = world();
    for (const name of ['a1', 'a2', 'a3']) ask('a', name);
    ask('b', 'b1');
    expect(granted).toEqual(['a1', 'b1']);
  });

  test('what is held already stops all but one of a key, which ends and lets the next in', () => {
    const { held, granted, ask } = world();
    const body = held.open('a');
    expect(body.tryAdd(9)).toBe(true);
    const first = ask('a', 'a1');
    ask('a', 'a2');
    expect(granted).toEqual(['a1']);
    first.give();
    expect(granted).toEqual(['a1', 'a2']);
    body.release();
  });

  test('a request that ends makes room', () => {
    const { held, granted, ask } = world(20, 20);
    const answer = held.open('b');
    answer.add(15);
    ask('a', 'a1');
    ask('c', 'c1');
    expect(granted).toEqual(['a1']);
    answer.release();
    expect(granted).toEqual(['a1', 'c1']);
  });
});
