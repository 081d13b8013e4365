import { describe, expect, test } from 'vitest';
import { vendorName } from '../vendorName.ts';
import { keepListing } from './keepListing.ts';
import { acceptListing } from './listing.ts';

const inputSchema = { type: 'object' };
const offered = (tools: readonly unknown[]) => [...acceptListing('evil', tools).functions.keys()];

describe('a listing that means harm', () => {
  test('a function listed three times is not offered, however many others are held back', () => {
    const bad = Array.from({ length: 150 }, (_, at) => ({ name: `bad${at}`, inputSchema: 7 }));
    const twin = { name: 'twin', inputSchema };
    expect(offered([...bad, twin, twin, twin, { name: 'good', inputSchema }])).toEqual(['good']);
  });

  test('a name written to equal the short form of another is held back, and so is the other', () => {
    const long = 'x'.repeat(100);
    const twin = vendorName('evil', long).slice('evil__'.length);
    const dotted = 'a.b';
    const twinOfDotted = vendorName('evil', dotted).slice('evil__'.length);
    const tools = [long, twin, dotted, twinOfDotted, 'good'].map((name) => ({ name, inputSchema }));
    expect(offered(tools)).toEqual(['good']);
    expect([...acceptListing('evil', tools).heldBack.keys()].sort()).toEqual([dotted, twinOfDotted, twin, long].sort());
  });

  test('[I12] four thousand functions are no burden', () => {
    const tools = Array.from({ length: 4_096 }, (_, at) => ({
      name: `f${at}`,
      inputSchema,
      description: 'd'.repeat(500),
    }));
    expect(offered(tools)).toHaveLength(4_096);
  });
});

test('[I12] what goes wrong with one tool’s listing ends nothing but its own attempt', async () => {
  const stop = new AbortController();
  const problems: string[] = [];
  await keepListing({
    toolId: 'evil',
    withHop: () => Promise.reject(new Error('nobody thought of this')),
    onListing: () => {},
    onProblem: (problem) => {
      problems.push(problem);
      stop.abort();
    },
    signal: stop.signal,
  });
  expect(problems).toEqual(['bug: nobody thought of this']);
});
