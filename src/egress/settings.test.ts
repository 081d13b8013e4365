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
