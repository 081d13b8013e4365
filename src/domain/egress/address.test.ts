import { BlockList, isIPv6 } from 'node:net';
import { describe, expect, test } from 'vitest';
import { type AddressClass, classifyAddress } from './address.ts';

/** Every vector, and its neighbours just outside. */
const TABLE: readonly (readonly [AddressClass, ...string[]])[] = [
  ['loopback', '127.0.0.1', '127.0.0.0', '127.1.2.3', '127.255.255.255', '::1'],
  ['this-host', '0.0.0.0', '0.1.2.3', '0.255.255.255', '::'],
  ['private', '10.0.0.0', '10.255.255.255', '172.16.0.0', '172.31.255.255', '192.168.0.0', '192.168.255.255'],
  ['private', 'fc00::', 'fc00::1', 'fd00:1::1', 'fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
  ['shared', '100.64.0.0', '100.64.0.1', '100.127.255.255', '100.100.100.199', '100.100.100.201'],
  ['link-local', '169.254.0.0', '169.254.20.10', '169.254.169.253', '169.254.255.255'],
  ['link-local', 'fe80::1', 'febf:ffff::1', 'fe80::5efe:a9fe:a9fe'],
  ['metadata', '169.254.169.254', '169.254.170.2', '169.254.170.23', '168.63.129.16', '100.100.100.200', '192.0.0.192'],
  ['metadata', 'fd00:ec2::254', 'fd00:ec2::23', 'fd20:ce::254', 'fd00:42::42'],
  ['multicast', '224.0.0.0', '224.0.0.1', '239.255.255.255', 'ff02::1', 'ff00::'],
  ['reserved', '255.255.255.255', '240.0.0.1', '192.0.0.1', '192.0.0.255', '192.0.2.1', '198.51.100.1', '203.0.113.1'],
  ['reserved', '198.18.0.1', '198.19.255.255', '192.88.99.1', '192.31.196.1', '192.52.193.1', '192.175.48.1'],
  ['reserved', 'fec0::1', '100::1', '100:0:0:1::1', '1fff:ffff::1', '4000::1', '5f00::1', 'e000::1', '200::1'],
  ['reserved', '2001:2::1', '2001:3::1', '2001:4:112::1', '2001:10::1', '2001:20::1', '2001:30::1', '2001:1ff::1'],
  ['reserved', '2001:db8::1', '3fff::1', '3fff:fff::1', '2620:4f:8000::1'],
  ['embedded-ipv4', '::ffff:127.0.0.1', '::ffff:7f00:1', '::FFFF:7F00:1', '::ffff:a9fe:a9fe', '::ffff:8.8.8.8'],
  ['embedded-ipv4', '::7f00:1', '::a9fe:a9fe', '::127.0.0.1', '::808:808', '::2', '::ffff:0:7f00:1'],
  ['embedded-ipv4', '64:ff9b::a9fe:a9fe', '64:ff9b::808:808', '64:ff9b:1::a9fe:a9fe', '64:ff9b:1:ffff::1'],
  ['embedded-ipv4', '2002:a9fe:a9fe::1', '2002:7f00:1::', '2002:808:808::1'],
  ['embedded-ipv4', '2001:0:4136:e378:8000:63bf:5601:5601', '2001::1'],
  ['isatap', '2600::5efe:a9fe:a9fe', '2600::200:5efe:a9fe:a9fe', '2600::300:5efe:808:808', 'fd00::5efe:7f00:1'],
  ['zoned', 'fe80::1%eth0', '2600::1%1', '::1%lo'],
  // net.isIP refuses these, and other parsers read addresses in them.
  ['not-an-address', '127.1', '2130706433', '0x7f000001', '017700000001', '0177.0.0.1', '010.0.0.1', '127.0.0.1.'],
  [
    'not-an-address',
    '',
    ' 127.0.0.1',
    '1.2.3.4 ',
    '1.2.3',
    '256.1.1.1',
    '[::1]',
    '::1/128',
    '1.2.3.4:80',
    'localhost',
    ':::',
  ],
  ['public', '1.0.0.0', '9.255.255.255', '11.0.0.0', '126.255.255.255', '128.0.0.0', '172.15.255.255', '172.32.0.0'],
  ['public', '192.167.255.255', '192.169.0.0', '100.63.255.255', '100.128.0.0', '169.253.255.255', '169.255.0.0'],
  [
    'public',
    '168.63.129.15',
    '168.63.129.17',
    '191.255.255.255',
    '192.0.1.0',
    '192.0.3.0',
    '192.88.98.255',
    '192.88.100.0',
  ],
  ['public', '198.17.255.255', '198.20.0.0', '198.51.99.255', '198.51.101.0', '203.0.112.255', '203.0.114.0'],
  ['public', '223.255.255.255', '192.31.195.255', '192.31.197.0', '192.52.192.255', '192.52.194.0', '192.175.49.0'],
  ['public', '2001:200::1', '2001:db7:ffff::1', '2001:db9::1', '2003::1', '2600::1', '2600::5eff:a9fe:a9fe', '3ffe::1'],
  ['public', '2606:4700:4700::1111', '2620:4f:7fff::1', '2620:4f:8001::1', '2600::400:5efe:1:1'],
];

describe('[case 100] [N09] classes of addresses', () => {
  for (const [expected, ...addresses] of TABLE) {
    test.each(addresses)(`${expected}: %s`, (address) => expect(classifyAddress(address)).toBe(expected));
  }

  test('agrees with the private and local ranges of an independent matcher, over both families', () => {
    // A list of its own: an IPv4 address is also looked up as a mapped one.
    const closed = new BlockList();
    const closed6 = new BlockList();
    for (const [net, bits] of [
      ['10.0.0.0', 8],
      ['172.16.0.0', 12],
      ['192.168.0.0', 16],
      ['127.0.0.0', 8],
      ['169.254.0.0', 16],
      ['0.0.0.0', 8],
      ['100.64.0.0', 10],
      ['224.0.0.0', 3],
    ] as const) {
      closed.addSubnet(net, bits, 'ipv4');
    }
    for (const [net, bits] of [
      ['fc00::', 7],
      ['fe80::', 10],
      ['ff00::', 8],
      ['::', 8],
    ] as const)
      closed6.addSubnet(net, bits, 'ipv6');
    let seed = 7;
    const random = (below: number): number => {
      seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0;
      return Math.floor((seed / 2 ** 32) * below);
    };
    for (let i = 0; i < 20_000; i++) {
      const address =
        i % 2 === 0
          ? [0, 0, 0, 0].map(() => random(256)).join('.')
          : [0, 0, 0, 0, 0, 0, 0, 0].map(() => random(0x10000).toString(16)).join(':');
      const blocked = isIPv6(address) ? closed6.check(address, 'ipv6') : closed.check(address);
      if (blocked) expect(classifyAddress(address), address).not.toBe('public');
    }
  });
});
