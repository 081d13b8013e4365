import { describe, expect, test } from 'vitest';
import { bindingProblem, isHostName, type LiveBinding } from './binding.ts';
import { compileInjection, decideInjection, isCredentialName } from './decideInjection.ts';
import { Secret } from './secret.ts';

const PLACEHOLDER = 'oz0held0AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA';
// biome-ignore lint/suspicious/noTemplateCurlyInString: what a binding says
const BEARER = 'Bearer ${value}';
const base = {
  secret: 'KEY',
  host: 'api.example.test',
  port: 443,
  in: 'header',
  name: 'Authorization',
  format: BEARER,
  websocket: false,
} as const;
const live = (value: string | undefined): LiveBinding => ({
  binding: base,
  placeholder: PLACEHOLDER,
  value: value === undefined ? undefined : new Secret(value),
});
const injection = compileInjection([live('the-real-value')]);
const site = { host: 'api.example.test', port: 443, scheme: 'https' } as const;
const bearer = [['Authorization', `Bearer ${PLACEHOLDER}`]] as const;

describe('[C02] the decision on a request', () => {
  test('in its slot, at its host and port, over https', () => {
    expect(decideInjection({ target: '/', fields: bearer, site }, injection)).toEqual({
      do: 'send',
      target: '/',
      fields: [['Authorization', 'Bearer the-real-value']],
      injected: ['KEY'],
    });
  });
  test.each([
    ['[case 75] another port', { ...site, port: 8443 }, 'placeholder-out-of-place'],
    ['[case 75] another host', { ...site, host: 'api.example.test.evil.test' }, 'placeholder-out-of-place'],
    ['[case 75] the domain above', { ...site, host: 'example.test' }, 'placeholder-out-of-place'],
    ['[case 75] an address', { ...site, host: '192.0.2.1' }, 'placeholder-out-of-place'],
    ['[case 77] http', { ...site, scheme: 'http' as const }, 'placeholder-in-clear'],
    ['[case 77] http, port 80', { ...site, port: 80, scheme: 'http' as const }, 'placeholder-in-clear'],
  ])('%s', (_, where, reason) => {
    expect(decideInjection({ target: '/', fields: bearer, site: where }, injection)).toEqual({ do: 'refuse', reason });
  });
  test('[case 81] a secret without a value is not an empty one', () => {
    const without = compileInjection([live(undefined)]);
    expect(decideInjection({ target: '/', fields: bearer, site }, without)).toEqual({
      do: 'refuse',
      reason: 'secret-unavailable',
    });
  });
  test('a value with a colon is no user of Basic credentials', () => {
    const colon = compileInjection([live('one:two-three')]);
    const fields = [['Authorization', `Basic ${Buffer.from(`${PLACEHOLDER}:`).toString('base64')}`]] as const;
    expect(decideInjection({ target: '/', fields, site }, colon).do).toBe('refuse');
  });
  test('at a host without a binding, credentials of the tool are its own affair', () => {
    const fields = [['Authorization', 'Bearer mine']] as const;
    expect(
      decideInjection({ target: '/?access_token=x', fields, site: { ...site, host: 'other.test' } }, injection).do,
    ).toBe('send');
  });
});

test.each([
  ['authorization', true],
  ['x-api-key', true],
  ['x-auth-token', true],
  ['x-amz-security-token', true],
  ['apikey', true],
  ['cookie', true],
  ['x-client-secret', true],
  ['idempotency-key', false],
  ['sec-websocket-key', false],
  ['x-author', false],
  ['x-keyboard', false],
  ['accept', false],
])('[C06] %s is a credential: %s', (name, expected) => {
  expect(isCredentialName(name)).toBe(expected);
});

test.each([
  [{}, undefined],
  [{ host: 'API.example.test' }, /not an exact host/],
  [{ host: '*.example.test' }, /not an exact host/],
  [{ host: 'localhost' }, /not an exact host/],
  [{ host: '127.0.0.1' }, /not an exact host/],
  [{ host: 'a.test.' }, /not an exact host/],
  [{ port: 65_536 }, /not a port/],
  [{ format: 'Bearer' }, /once/],
  [{ format: `${BEARER}${BEARER}` }, /once/],
  [{ format: `X\r\n${BEARER}` }, /visible ASCII/],
  [{ name: 'Transfer-Encoding' }, /no secret goes into/],
  [{ name: 'X_Key' }, /plain header/],
])('a binding with %j', (more, problem) => {
  const found = bindingProblem({ ...base, ...more });
  if (problem === undefined) expect(found).toBeUndefined();
  else expect(found).toMatch(problem);
});

test('host names', () => {
  expect(isHostName('xn--bcher-kva.example')).toBe(true);
  for (const wrong of [
    '',
    'a',
    'a..b',
    '-a.test',
    'a-.test',
    'a_b.test',
    `${'a'.repeat(64)}.test`,
    'a.1',
    'a.test\0.b',
  ]) {
    expect(isHostName(wrong), wrong).toBe(false);
  }
});
