// biome-ignore-all lint/suspicious/noTemplateCurlyInString: ${...} is what users write
import { describe, expect, test } from 'vitest';
import type { SecretBinding } from '../../domain/config/sidecar.ts';
import { Secret } from '../../domain/credential/secret.ts';
import { createHeaders } from './fillHeaders.ts';

const fill = (
  headers: Record<string, string>,
  bindings: readonly SecretBinding[] = [],
  values: Record<string, string> = {},
) =>
  createHeaders({
    url: new URL('https://mcp.test/mcp'),
    headers,
    bindings,
    secretsNow: () => ({
      values: new Map(Object.entries(values).map(([name, value]) => [name, new Secret(value)])),
      problems: [{ name: 'EMPTY', problem: 'empty' }],
    }),
  })();
const bind = (host: string, more: Partial<SecretBinding> = {}): SecretBinding => ({
  secret: 'TOKEN',
  host,
  port: 443,
  in: 'header',
  name: 'Authorization',
  format: 'Bearer ${value}',
  websocket: false,
  ...more,
});
const TOKEN = { TOKEN: 'a-secret-$&-token\n' };

describe('headers of a remote server', () => {
  test('[C05] a secret is filled in as it is, without an editor’s newline', () => {
    expect(fill({ Authorization: 'Bearer ${TOKEN}' }, [], TOKEN)).toMatchObject({
      headers: { authorization: 'Bearer a-secret-$&-token' },
    });
  });
  test('[C05] a bound one goes to its own host, in a header or the query, and nowhere else', () => {
    expect(fill({}, [bind('mcp.test')], TOKEN)).toMatchObject({
      headers: { authorization: 'Bearer a-secret-$&-token' },
    });
    expect(fill({}, [bind('mcp.test', { in: 'query', name: 'key', format: '${value}' })], TOKEN)).toMatchObject({
      headers: {},
      query: 'key=a-secret-%24%26-token',
    });
    expect(fill({ 'X-Key': '${TOKEN}' }, [bind('other.test')], TOKEN)).toEqual({
      ok: false,
      problem: 'the secret TOKEN is bound to other.test, and does not go to mcp.test',
    });
    expect(fill({}, [bind('mcp.test', { port: 8443 })], TOKEN)).toMatchObject({ ok: true, headers: {} });
  });
  test('[N12] what is bound wins over a header of its name, whose secret is then not needed', () => {
    expect(fill({ AUTHORIZATION: 'Bearer ${NONE}', 'X-Team': 'a' }, [bind('mcp.test')], TOKEN)).toMatchObject({
      ok: true,
      headers: { authorization: 'Bearer a-secret-$&-token', 'x-team': 'a' },
    });
  });
  test.each([
    ['missing', { A: '${NONE}' }, 'the secret NONE is missing'],
    ['empty', { A: '${EMPTY}' }, 'the secret EMPTY is empty'],
    ['a line break', { A: 'x\r\nHost: evil' }, 'the header a cannot be sent as it is written'],
    ['a name that is none', { 'a b': 'x' }, 'the header a b cannot be sent as it is written'],
  ])('[C05] nothing is sent: %s', (_name, headers, problem) => {
    expect(fill(headers as Record<string, string>)).toEqual({ ok: false, problem });
  });
});
