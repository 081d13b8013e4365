import { describe, expect, test } from 'vitest';
import { ConfigurationError } from '../runtime/configuration.ts';
import { readSettings } from './settings.ts';

const NEEDED = { OZ0_NAMESPACE: 'oz0-system', OZ0_TRUST_DOMAIN: 'oz0.test' };

describe('[O03] settings of egress', () => {
  test('nothing is opened where nothing is said', () => {
    expect(readSettings(NEEDED)).toMatchObject({
      allow: [],
      never: [],
      edge: { host: 'oz0-edge.oz0-system.svc.cluster.local.', port: 443 },
    });
  });

  test.each([
    '10.1.0.0/16, fd00:1::/64',
    '["10.1.0.0/16", {"cidr": "fd00:1::/64", "namespaces": ["team"], "ports": [443]}]',
  ])('%s is read', (text) => {
    const { allow } = readSettings({ ...NEEDED, OZ0_CONNECT_ALLOW_NET: text });
    expect(allow.map(({ cidr }) => cidr.text)).toEqual(['10.1.0.0/16', 'fd00:1::/64']);
  });

  test('the API server’s own address is known beforehand, of either family', () => {
    const api = (host: string) =>
      readSettings({ ...NEEDED, KUBERNETES_SERVICE_HOST: host }).api.map(({ text }) => text);
    expect(api('10.96.0.1')).toEqual(['10.96.0.1/32']);
    expect(api('fd00:96::1')).toEqual(['fd00:96::1/128']);
  });

  test('every mistake is named, and the process does not start', () => {
    const read = () =>
      readSettings({
        OZ0_NAMESPACE: 'oz0-system',
        OZ0_CONNECT_ALLOW_NET: '0.0.0.0/0,169.254.0.0/16,10.1.1.1/8',
        OZ0_EGRESS_NEVER: 'everything',
        OZ0_POD_CIDRS: '10.244.0.0',
        OZ0_PORT: '0x',
      });
    expect(read).toThrow(ConfigurationError);
    for (const expected of [
      /OZ0_TRUST_DOMAIN: is missing/,
      /OZ0_CONNECT_ALLOW_NET: 0\.0\.0\.0\/0: is everything/,
      /OZ0_CONNECT_ALLOW_NET: 169\.254\.0\.0\/16: is link-local/,
      /OZ0_CONNECT_ALLOW_NET: 10\.1\.1\.1\/8: has bits set/,
      /OZ0_EGRESS_NEVER: everything: is not a CIDR/,
      /OZ0_POD_CIDRS: 10\.244\.0\.0: is not a CIDR/,
      /OZ0_PORT: must be a port/,
    ]) {
      expect(read).toThrow(expected);
    }
  });
});

describe('[S09] the model gateway of the cluster', () => {
  const model = (more: Record<string, string>) => readSettings({ ...NEEDED, ...more }).model;

  test('there is none unless there is a URL', () => {
    expect(model({ OZ0_MODEL_URL: '', OZ0_MODEL_KEY_FILE: '/oz0/model/key' })).toBeUndefined();
  });

  test.each(['https://models.example.com/base', 'http://gateway.models.svc:4000', 'http://g.m.svc.cluster.local'])(
    '%s is taken, with the usual header and paths',
    (url) => {
      expect(model({ OZ0_MODEL_URL: url })).toMatchObject({
        url: new URL(url),
        header: 'Authorization',
        format: 'Bearer '.concat('$', '{value}'),
        paths: expect.arrayContaining(['/v1/messages']),
      });
    },
  );

  test.each<[string, Record<string, string>, RegExp]>([
    [
      'a key that would go in the clear',
      { OZ0_MODEL_URL: 'http://models.example.com' },
      /OZ0_MODEL_URL: must be an https/,
    ],
    ['a user name', { OZ0_MODEL_URL: 'https://me@models.example.com' }, /without user name/],
    ['a query', { OZ0_MODEL_URL: 'https://models.example.com/?a=b' }, /without user name, query/],
    ['a format without the value', { OZ0_MODEL_FORMAT: 'Bearer' }, /OZ0_MODEL_FORMAT: the format must hold/],
    ['a header of the transport', { OZ0_MODEL_HEADER: 'Host' }, /no secret goes into Host/],
    ['a path that is none', { OZ0_MODEL_PATHS: '/v1/messages,v1' }, /OZ0_MODEL_PATHS: v1 is no path/],
    ['every path', { OZ0_MODEL_PATHS: '/' }, /OZ0_MODEL_PATHS: \/ is no path/],
  ])('%s is not', (_name, more, problem) => {
    expect(() => model({ OZ0_MODEL_URL: 'https://models.example.com', ...more })).toThrow(problem);
  });
});
