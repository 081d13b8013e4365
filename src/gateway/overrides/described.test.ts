import { describe, expect, test } from 'vitest';
import { type CompiledTool, compileTool } from '../catalog/tool.ts';
import { acceptListing } from '../listing/listing.ts';
import { describeFunction } from './described.ts';

const image = { reference: 'tools.example/tool:1', command: ['/tool'], transport: { stdio: {} } };
const toolOf = (spec: object, before?: CompiledTool): CompiledTool => {
  const object = { apiVersion: 'oz0.ai/v1alpha1', kind: 'Tool', metadata: { name: 'gh', namespace: 'acme' }, spec };
  const tool = compileTool(object, before);
  if (tool?.broken !== undefined || tool === undefined) throw new Error(tool?.broken);
  return tool;
};
const listedOf = (annotations: object | undefined, more: object = {}) => {
  const listing = acceptListing('gh', [{ name: 'f', inputSchema: { type: 'object' }, annotations, ...more }]);
  const listed = listing.functions.get('f');
  if (listed === undefined) throw new Error([...listing.heldBack.values()].join());
  return listed;
};

describe('[P07] [case 35] a function as it is taken and shown', () => {
  const cases: [string, object | undefined, object | undefined, string, object | undefined][] = [
    ['reads', { readOnlyHint: true }, undefined, 'ReadOnly', { readOnlyHint: true }],
    ['says nothing', undefined, undefined, 'Undeclared', undefined],
    [
      'reads and destroys',
      { readOnlyHint: true, destructiveHint: true },
      undefined,
      'Destructive',
      { readOnlyHint: false, destructiveHint: true },
    ],
    ['a hint as text', { readOnlyHint: 'true', destructiveHint: false }, undefined, 'Undeclared', undefined],
    ['reads, and a hint as text', { readOnlyHint: true, destructiveHint: 'no' }, undefined, 'Undeclared', undefined],
    ['set', { title: 'F' }, { readOnlyHint: true }, 'ReadOnly', { title: 'F', readOnlyHint: true }],
    [
      'tightened',
      { readOnlyHint: true },
      { destructiveHint: true },
      'Destructive',
      { readOnlyHint: false, destructiveHint: true },
    ],
    [
      'not loosened',
      { destructiveHint: true },
      { destructiveHint: false },
      'Destructive',
      { readOnlyHint: false, destructiveHint: true },
    ],
  ];
  test.each(cases)('%s', (_, annotations, override, kind, shown) => {
    const tool = toolOf({ image, ...(override === undefined ? {} : { functions: { f: { annotations: override } } }) });
    const described = describeFunction(tool, listedOf(annotations));
    expect([described.kind, described.definition['annotations']]).toEqual([kind, shown]);
  });

  test('[Y07] a remote server’s functions reach out, whatever it says', () => {
    const inside = { openWorldHint: false };
    expect(describeFunction(toolOf({ url: 'https://mcp.example.com/mcp' }), listedOf(inside)).openWorld).toBe(true);
    expect(describeFunction(toolOf({ image }), listedOf(inside)).openWorld).toBe(false);
    expect(describeFunction(toolOf({ image }), listedOf({})).openWorld).toBe(true);
    const open = { image, functions: { f: { annotations: { openWorldHint: true } } } };
    const described = describeFunction(toolOf(open), listedOf(inside));
    expect([described.openWorld, described.definition['annotations']]).toEqual([true, { openWorldHint: true }]);
  });

  test('[R03] who keeps idempotency keys is said by the server or on the Tool, and asked anew when that changes', () => {
    const listed = listedOf({ idempotentHint: true });
    const before = toolOf({ image });
    expect(describeFunction(before, listed)).toMatchObject({ idempotent: true, honoursKey: false });
    expect(describeFunction(before, listed)).toBe(describeFunction(before, listed));
    const after = toolOf({ image, honoursIdempotencyKey: ['f'] }, before);
    expect(describeFunction(after, listed).honoursKey).toBe(true);
    const says = listedOf({}, { _meta: { 'ai.oz0/honours-idempotency-key': true } });
    expect(describeFunction(before, says).honoursKey).toBe(true);
    expect(says.hash).not.toBe(listedOf({}).hash);
  });
});
