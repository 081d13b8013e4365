import { describe, expect, test } from 'vitest';
import { matches, parseHostPattern, parseTarget, patternOfUrl } from './host.ts';

describe('hosts of a tool', () => {
  test.each<[string, string, number, boolean]>([
    ['api.github.com', 'api.github.com', 443, false],
    ['api.github.com:8443', 'api.github.com', 8443, false],
    ['*.example.com', 'example.com', 443, true],
    ['*.example.com:22', 'example.com', 22, true],
    ['xn--fa-hia.de', 'xn--fa-hia.de', 443, false],
    ['r3---sn-x.example.com', 'r3---sn-x.example.com', 443, false],
    ['10.1.2.3:5432', '10.1.2.3', 5432, false],
    ['[fd00::1]:443', 'fd00::1', 443, false],
    ['127.0.0.1.nip.io', '127.0.0.1.nip.io', 443, false],
  ])('%s', (text, host, port, wildcard) => {
    expect(parseHostPattern(text)).toEqual({ ok: true, pattern: { text, host, port, wildcard } });
  });

  test.each<[string, RegExp]>([
    ['https://api.github.com', /without a scheme/],
    ['api.github.com/v3', /without a path/],
    ['api.github.com?x', /without a path/],
    ['evil#@good.com', /without a path/],
    ['evil\\@good.com', /without a path/],
    ['user@good.com', /without a user name/],
    ['API.github.com', /lower case: api\.github\.com/],
    ['api.github.com.', /without the dot/],
    ['faß.de', /ASCII form: xn--fa-hia\.de/],
    ['аpple.com', /ASCII form: xn--pple-43d\.com/],
    ['１２７.0.0.1', /ASCII form|no host name/],
    ['so\u00adft.com', /ASCII form: soft\.com/],
    ['\u212aelvin.com', /ASCII form: kelvin\.com/],
    ['example。com', /ASCII form: example\.com/],
    ['localhost', /whole name/],
    ['metadata', /whole name/],
    ['com', /whole name/],
    ['*.*', /too wide/],
    ['a.localhost', /within a machine/],
    ['metadata.google.internal', /within a machine/],
    ['instance-data.ec2.internal', /within a machine/],
    ['kubernetes.default.svc', /within a machine/],
    ['kubernetes.default.svc.cluster.local', /within a machine/],
    ['printer.local', /within a machine/],
    ['metadata.goog', /metadata service/],
    ['metadata.tencentyun.com', /metadata service/],
    ['metadata.packet.net', /metadata service/],
    ['api.metadata.cloud.ibm.com', /metadata service/],
    ['*', /whole label/],
    ['*.com', /too wide/],
    ['*.*.com', /whole label/],
    ['a*.example.com', /whole label/],
    ['a.*.example.com', /whole label/],
    ['**.example.com', /whole label/],
    ['a..b', /no host name/],
    ['-a.com', /no host name/],
    ['a-.com', /no host name/],
    ['a_b.com', /no host name/],
    ['a b.com', /no host name/],
    ['a.com\u0000.evil.com', /ASCII form|no host name/],
    ['good%2eevil.com', /no host name/],
    ['xn--a.com', /no host name/],
    ['1.2.3', /no host name/],
    ['0x7f.1', /no host name/],
    ['127.1', /no host name/],
    ['010.0.0.1', /no host name/],
    ['a.0x1f', /no host name/],
    ['::1', /brackets/],
    ['[::0001]:443', /write it as \[::1\]/],
    ['[fe80::1%eth0]:443', /without a zone/],
    ['[1.2.3.4]:443', /IPv6/],
    ['a.com:0', /port/],
    ['a.com:65536', /port/],
    ['a.com:0443', /port/],
    ['a.com:', /port/],
    ['a.com:https', /port/],
    [`${'a'.repeat(64)}.com`, /no host name/],
    [`${'a.'.repeat(127)}com`, /no host name/],
    ['', /whole name/],
  ])('%j is refused with what to write', (text, expected) => {
    const read = parseHostPattern(text);
    expect(read.ok ? 'taken' : read.problem).toMatch(expected);
  });

  test.each<[string, string | undefined, number?]>([
    ['https://mcp.example.com/mcp', 'mcp.example.com', 443],
    ['https://mcp.example.com:8443/mcp?x=1', 'mcp.example.com', 8443],
    ['http://mcp.example.com/', 'mcp.example.com', 80],
    ['https://{params.host}/mcp', undefined],
    ['https://good.com@evil.com/', undefined],
    ['https://*.example.com/', undefined],
    ['ftp://a.com/', undefined],
    ['https:a.com', undefined],
    ['https://localhost/', undefined],
    ['https://evil\\@good.com/', undefined],
  ])('the host of the url %s', (url, host, port) => {
    const read = patternOfUrl(url);
    expect(read.ok ? [read.pattern.host, read.pattern.port] : undefined).toEqual(host && [host, port]);
  });
});

describe('[case 104] targets of CONNECT', () => {
  test.each<[string, string, string]>([
    ['api.github.com:443', 'name', 'api.github.com'],
    ['API.GitHub.com:443', 'name', 'api.github.com'],
    ['api.github.com.:443', 'name', 'api.github.com'],
    ['localhost:443', 'name', 'localhost'],
    ['127.0.0.1:443', 'address', '127.0.0.1'],
    ['[::1]:443', 'address', '::1'],
    ['[::FFFF:127.0.0.1]:443', 'address', '::ffff:7f00:1'],
    ['[0:0:0:0:0:0:0:1]:443', 'address', '::1'],
  ])('%s', (text, kind, host) => expect(parseTarget(text)).toEqual({ kind, host, port: 443 }));

  // Each spelling that a URL parser would make an address or a name of.
  test.each([
    '',
    'host',
    'host:',
    ':443',
    'host:0',
    'host:65536',
    'host:0443',
    'host:+443',
    'host:4 43',
    'host:443/',
    'user@host:443',
    'https://host:443',
    'a..b:443',
    '-a:443',
    'a b:443',
    'a:443\r\nX: y',
    'host:443 ',
    ' host:443',
    'ho%73t:443',
    'host..:443',
    '.host:443',
    'a_b.com:443',
    'good\\.evil:443',
    'good%2eevil:443',
    'a\tb.com:443',
    'a\u0000b.com:443',
    '2130706433:443',
    '0x7f000001:443',
    '017700000001:443',
    '0177.0.0.1:443',
    '127.1:443',
    '127.0.1:443',
    '0x7f.1:443',
    '127.0.0.1.:443',
    '0:443',
    '2852039166:443',
    '0xa9fea9fe:443',
    '0251.0376.0251.0376:443',
    '169.254.43518:443',
    '0xa9.254.0251.254:443',
    '１２７.0.0.1:443',
    '①.1.1.1:443',
    '127。0。0。1:443',
    'faß.de:443',
    'аpple.com:443',
    'xn--a.com:443',
    '::1:443',
    '[::1]',
    '[::1%lo]:443',
    '[fe80::1%25eth0]:443',
    '[127.0.0.1]:443',
    '[::1:443',
    '::1]:443',
    `${'a'.repeat(64)}.com:443`,
    `${'a.'.repeat(127)}com:443`,
    `${'a'.repeat(400)}:443`,
  ])('%j is none', (text) => expect(parseTarget(text)).toBeUndefined());

  test('names of 253 and labels of 63 are read', () => {
    const longest = `${'a'.repeat(63)}.${'b'.repeat(63)}.${'c'.repeat(63)}.${'d'.repeat(61)}`;
    expect(longest).toHaveLength(253);
    expect(parseTarget(`${longest}:443`)?.host).toBe(longest);
  });
});

test.each<[string, string, boolean]>([
  ['example.com', 'example.com:443', true],
  ['example.com', 'EXAMPLE.com.:443', true],
  ['example.com', 'example.com:8443', false],
  ['example.com', 'a.example.com:443', false],
  ['example.com', 'badexample.com:443', false],
  ['example.com:8443', 'example.com:443', false],
  ['*.example.com', 'a.example.com:443', true],
  ['*.example.com', 'example.com:443', false],
  ['*.example.com', 'a.b.example.com:443', false],
  ['*.example.com', 'a.example.com.evil.com:443', false],
  ['10.1.2.3', '10.1.2.3:443', true],
  ['[fd00::1]', '[fd00:0::1]:443', true],
  ['*.0.0.1.nip.io', '127.0.0.1.nip.io:443', true],
])('%s matches %s: %s', (pattern, target, expected) => {
  const read = parseHostPattern(pattern);
  const asked = parseTarget(target);
  if (!read.ok || asked === undefined) throw new Error('not read');
  expect(matches(read.pattern, asked)).toBe(expected);
});
