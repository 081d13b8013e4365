import { describe, expect, test } from 'vitest';
import { decodeHeaderValue, encodeHeaderValue } from './header.ts';
import { paramMismatch, scanParamHeaders } from './paramHeader.ts';

describe('values in headers', () => {
  test.each(['get_pr', 'Grüße', ' padded ', 'a\nb', '', '=?base64?YQ==?=', '🎉', 'a b'])(
    '%j there and back',
    (value) => {
      const header = encodeHeaderValue(value);
      expect(header).toMatch(/^[\x20-\x7e]*$/);
      expect(decodeHeaderValue(header)).toBe(value);
    },
  );

  test.each([
    ['=?base64?YQ==?=', 'a'],
    ['=?base64?YQ?=', undefined],
    ['=?base64?Y Q==?=', undefined],
    ['=?base64?_w==?=', undefined],
    ['=?base64?/w==?=', undefined],
    ['=?BASE64?YQ==?=', '=?BASE64?YQ==?='],
    ['plain', 'plain'],
  ])('%s is %j', (header, value) => {
    expect(decodeHeaderValue(header)).toBe(value);
  });
});

describe('x-mcp-header', () => {
  const of = (properties: object, more: object = {}) => scanParamHeaders({ type: 'object', properties, ...more });

  test('found through properties, also nested', () => {
    const scanned = of({
      a: { type: 'string', 'x-mcp-header': 'A' },
      b: { type: 'object', properties: { c: { type: 'boolean', 'x-mcp-header': 'Deep-C' } } },
      default: { type: 'string', 'x-mcp-header': 'D' },
    });
    expect(scanned).toEqual({
      ok: true,
      headers: [
        { path: ['a'], header: 'mcp-param-a', type: 'string' },
        { path: ['b', 'c'], header: 'mcp-param-deep-c', type: 'boolean' },
        { path: ['default'], header: 'mcp-param-d', type: 'string' },
      ],
    });
  });

  test.each([
    ['empty', of({ a: { type: 'string', 'x-mcp-header': '' } })],
    ['no token', of({ a: { type: 'string', 'x-mcp-header': 'a b' } })],
    ['no text', of({ a: { type: 'string', 'x-mcp-header': 1 } })],
    [
      'twice, in other case',
      of({ a: { type: 'string', 'x-mcp-header': 'A' }, b: { type: 'string', 'x-mcp-header': 'a' } }),
    ],
    ['a number', of({ a: { type: 'number', 'x-mcp-header': 'A' } })],
    ['an object', of({ a: { type: 'object', 'x-mcp-header': 'A' } })],
    ['two types', of({ a: { type: ['string', 'null'], 'x-mcp-header': 'A' } })],
    ['in items', of({ a: { type: 'array', items: { type: 'string', 'x-mcp-header': 'A' } } })],
    ['in anyOf', of({}, { anyOf: [{ properties: { a: { type: 'string', 'x-mcp-header': 'A' } } }] })],
    ['in $defs', of({}, { $defs: { a: { type: 'string', 'x-mcp-header': 'A' } } })],
    ['in not', of({}, { not: { properties: { a: { type: 'string', 'x-mcp-header': 'A' } } } })],
    ['on the root', scanParamHeaders({ type: 'object', 'x-mcp-header': 'A' })],
  ])('broken: %s', (_, scanned) => {
    expect(scanned.ok).toBe(false);
  });

  test('compared with the arguments: numbers by value, text exactly, absent and null not at all', () => {
    const declared = [
      { path: ['n'], header: 'mcp-param-n', type: 'integer' as const },
      { path: ['o', 's'], header: 'mcp-param-s', type: 'string' as const },
    ];
    const agree = (args: object, headers: Record<string, string>) =>
      paramMismatch(declared, args as Record<string, unknown>, (name) => headers[name]) === undefined;
    expect(agree({ n: 42, o: { s: 'x' } }, { 'mcp-param-n': '42.0', 'mcp-param-s': 'x' })).toBe(true);
    expect(agree({ n: 42 }, { 'mcp-param-n': '43' })).toBe(false);
    expect(agree({ n: 42 }, {})).toBe(false);
    expect(agree({ n: null, o: {} }, {})).toBe(true);
    expect(agree({ o: { s: '42' } }, { 'mcp-param-s': '42.0' })).toBe(false);
    expect(agree({ o: { s: 'ü' } }, { 'mcp-param-s': '=?base64?w7w=?=' })).toBe(true);
  });
});
