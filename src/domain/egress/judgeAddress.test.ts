import { describe, expect, test } from 'vitest';
import { readAllowNet } from './allowNet.ts';
import { type Cidr, parseCidr } from './cidr.ts';
import { judgeAddress, type Networks } from './judgeAddress.ts';

function cidrs(...texts: readonly string[]): readonly Cidr[] {
  return texts.map(parseCidr).filter((range) => typeof range !== 'string');
}

function networks(allow: string): Networks {
  const read = readAllowNet(allow);
  if (!read.ok) throw new Error(read.problems.join());
  return {
    self: cidrs('10.1.0.9/32'),
    never: cidrs('10.66.0.0/16', '93.184.216.0/24'),
    nodes: cidrs('10.0.0.4/32', '51.15.0.4/32', 'fd00:9::4/128'),
    api: cidrs('10.0.0.2/32', '34.1.1.1/32'),
    services: cidrs('10.96.0.0/12', 'fd00:96::/108'),
    pods: cidrs('10.244.0.0/16', '52.0.0.0/24', 'fd00:244::/56'),
    allow: read.rules,
  };
}

const WIDE = '10.0.0.0/8,100.64.0.0/10,fc00::/7,192.168.0.0/16,172.16.0.0/12';
const NARROW = '10.244.3.16/28,52.0.0.16/28,fd00:244::10/124';

test.each<[string, string, string, string]>([
  // Nothing listed opens nothing.
  ['', '8.8.8.8', 'dial', 'public'],
  ['', '10.20.0.1', 'refuse', 'private'],
  ['', '100.64.0.1', 'refuse', 'shared'],
  ['', 'fd00::1', 'refuse', 'private'],
  [WIDE, '10.20.0.1', 'dial', 'private'],
  [WIDE, '100.64.0.1', 'dial', 'shared'],
  [WIDE, 'fd00::1', 'dial', 'private'],
  ['10.20.0.0/24', '10.20.0.255', 'dial', 'private'],
  ['10.20.0.0/24', '10.20.1.0', 'refuse', 'private'],
  ['10.20.0.0/24', '10.19.255.255', 'refuse', 'private'],
  // What nothing opens, within ranges that are listed.
  [WIDE, '10.1.0.9', 'refuse', 'self'],
  [WIDE, '10.66.3.3', 'refuse', 'never'],
  [WIDE, '93.184.216.34', 'refuse', 'never'],
  [WIDE, '10.0.0.4', 'refuse', 'cluster-node'],
  [WIDE, 'fd00:9::4', 'refuse', 'cluster-node'],
  [WIDE, '51.15.0.4', 'refuse', 'cluster-node'],
  [WIDE, '10.0.0.2', 'refuse', 'cluster-api'],
  [WIDE, '34.1.1.1', 'refuse', 'cluster-api'],
  [WIDE, '10.96.0.1', 'refuse', 'cluster-service'],
  [WIDE, 'fd00:96::1', 'refuse', 'cluster-service'],
  [WIDE, '100.100.100.200', 'refuse', 'metadata'],
  [WIDE, 'fd00:ec2::254', 'refuse', 'metadata'],
  [WIDE, '169.254.169.254', 'refuse', 'metadata'],
  [WIDE, '127.0.0.1', 'refuse', 'loopback'],
  [WIDE, '::ffff:10.20.0.1', 'refuse', 'embedded-ipv4'],
  [WIDE, 'fd00::5efe:a14:1', 'refuse', 'isatap'],
  // Pods: only by what is narrow.
  [WIDE, '10.244.3.17', 'refuse', 'cluster-pod'],
  [WIDE, '52.0.0.17', 'refuse', 'cluster-pod'],
  [NARROW, '10.244.3.17', 'dial', 'cluster-pod'],
  [NARROW, '10.244.3.32', 'refuse', 'cluster-pod'],
  [NARROW, '52.0.0.31', 'dial', 'cluster-pod'],
  [NARROW, '52.0.0.32', 'refuse', 'cluster-pod'],
  [NARROW, 'fd00:244::1f', 'dial', 'cluster-pod'],
  [NARROW, 'fd00:244::20', 'refuse', 'cluster-pod'],
  ['10.0.0.0/28', '10.0.0.4', 'refuse', 'cluster-node'],
  ['10.96.0.0/28', '10.96.0.1', 'refuse', 'cluster-service'],
  // Limits of a rule.
  ['[{"cidr":"10.20.0.0/16","namespaces":["team"]}]', '10.20.0.1', 'dial', 'private'],
  ['[{"cidr":"10.20.0.0/16","namespaces":["other"]}]', '10.20.0.1', 'refuse', 'private'],
  ['[{"cidr":"10.20.0.0/16","ports":[443,8443]}]', '10.20.0.1', 'dial', 'private'],
  ['[{"cidr":"10.20.0.0/16","ports":[80]}]', '10.20.0.1', 'refuse', 'private'],
  [
    '[{"cidr":"10.20.0.0/16","ports":[80]},{"cidr":"10.20.0.0/24","namespaces":["team"]}]',
    '10.20.0.1',
    'dial',
    'private',
  ],
])('[N09] with %j, %s: %s, %s', (allow, address, kind, what) => {
  expect(judgeAddress(address, { namespace: 'team', port: 443 }, networks(allow))).toMatchObject({ kind, class: what });
});

describe('[O03] connect-allow-net is validated', () => {
  test.each<[string, RegExp]>([
    ['0.0.0.0/0', /everything/],
    ['::/0', /everything/],
    ['10.0.0.0/7', /wider/],
    ['8.0.0.0/6', /wider/],
    ['fc00::/6', /wider/],
    ['127.0.0.0/8', /loopback, which is never opened/],
    ['127.0.0.1/32', /loopback/],
    ['::1/128', /loopback/],
    ['0.0.0.0/8', /this-host/],
    ['169.254.0.0/16', /link-local/],
    ['169.254.169.254/32', /metadata/],
    ['168.63.129.16/32', /metadata/],
    ['100.100.100.200/32', /metadata/],
    ['fd00:ec2::254/128', /metadata/],
    ['fe80::/10', /link-local/],
    ['224.0.0.0/4', /multicast/],
    ['192.0.2.0/24', /reserved/],
    ['::ffff:10.0.0.0/104', /embedded-ipv4/],
    ['64:ff9b::/96', /embedded-ipv4/],
    ['8.8.8.0/24', /public and needs no rule/],
    ['10.1.2.3/16', /bits set beyond its prefix/],
    ['fd00::1/64', /bits set/],
    ['10.0.0.0', /not a CIDR/],
    ['10.0.0.0/33', /not a CIDR/],
    ['10.0.0.0/08', /not a CIDR/],
    ['10.0/8', /not a CIDR/],
    ['010.0.0.0/8', /not a CIDR/],
    ['fd00::%eth0/64', /not a CIDR/],
    ['10.0.0.0/8,', /not a CIDR/],
    ['example.com', /not a CIDR/],
    ['[', /must be CIDRs/],
    ['[1]', /must be a CIDR/],
    ['[{"cidr":"10.0.0.0/8","ports":[0]}]', /ports must be/],
    ['[{"cidr":"10.0.0.0/8","ports":[65536]}]', /ports must be/],
    ['[{"cidr":"10.0.0.0/8","ports":["443"]}]', /ports must be/],
    ['[{"cidr":"10.0.0.0/8","ports":[]}]', /ports must be/],
    ['[{"cidr":"10.0.0.0/8","ports":443}]', /ports must be/],
    ['[{"cidr":"10.0.0.0/8","namespaces":[]}]', /namespaces must be/],
    ['[{"cidr":"10.0.0.0/8","namespaces":["A b"]}]', /namespaces must be/],
    ['[{"cidr":"10.0.0.0/8","namespace":["a"]}]', /namespace is not known/],
    ['[{"cidr":null}]', /must be a CIDR/],
  ])('%s is refused', (text, expected) => {
    const read = readAllowNet(text);
    expect(read.ok ? 'taken' : read.problems.join()).toMatch(expected);
  });

  test.each(['', '  ', '[]'])('%j opens nothing', (text) => {
    expect(readAllowNet(text)).toEqual({ ok: true, rules: [] });
  });

  test('all mistakes are named at once', () => {
    const read = readAllowNet('10.0.0.0/8, 127.0.0.0/8, 10.1.1.1/8');
    expect(read.ok ? [] : read.problems).toHaveLength(2);
  });
});
