/**
 * The hosts that a Tool names, and the target of a CONNECT: each read from one exact form, refused otherwise with what to write
 * instead. Pure. Names are compared as A-labels in lower case; what they resolve to is judged elsewhere.
 */
import { isIP } from 'node:net';
import { domainToASCII, domainToUnicode } from 'node:url';
import { parseAddress } from './cidr.ts';

export interface HostPattern {
  /** As written. */
  readonly text: string;
  /** A name, or an address in its one spelling. With `wildcard`, what follows `*.`. */
  readonly host: string;
  /** One label, whatever it is, before `host`. */
  readonly wildcard: boolean;
  readonly port: number;
}

export type HostReading =
  | { readonly ok: true; readonly pattern: HostPattern }
  | { readonly ok: false; readonly problem: string };

export interface ConnectTarget {
  readonly kind: 'name' | 'address';
  /** Lower case, no dot at its end; an address in its one spelling, without brackets. */
  readonly host: string;
  readonly port: number;
}

const DEFAULT_PORT = 443;
const LABEL = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;
const PORT = /^[1-9][0-9]{0,4}$/;

/** Names that lead into a machine, a cluster or a cloud, by the ways that resolvers know them. */
const LOCAL_SUFFIXES = ['localhost', 'local', 'internal', 'svc', 'cluster.local', 'localdomain', 'home.arpa', 'onion'];
const METADATA_NAMES = [
  'metadata.goog',
  'metadata.tencentyun.com',
  'metadata.packet.net',
  'api.metadata.cloud.ibm.com',
];

/** Reads an entry of a Tool's `hosts`: `<name>`, `<name>:<port>`, `*.<name>`, an address; port 443 unless stated. */
export function parseHostPattern(text: string): HostReading {
  if (text.length > 300) return no('is too long');
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(text)) return no('write the host alone, without a scheme');
  if (/[/?#\\]/.test(text)) return no('write the host alone, without a path');
  if (text.includes('@')) return no('write the host alone, without a user name');
  const split = splitPort(text);
  if (split === undefined) return no('its port must be a whole number from 1 to 65535');
  const { host, port = DEFAULT_PORT } = split;
  if (host.startsWith('[')) {
    const address = parseAddress(host.slice(1, -1));
    if (address?.family !== 6 || !host.endsWith(']'))
      return no('within brackets there must be an IPv6 address without a zone');
    if (host !== `[${address.text}]`) return no(`write it as [${address.text}]`);
    return { ok: true, pattern: { text, host: address.text, wildcard: false, port } };
  }
  if (isIP(host) === 4) return { ok: true, pattern: { text, host, wildcard: false, port } };
  if (isIP(host) === 6) return no(`write an IPv6 address in brackets: [${host}]`);
  const wildcard = host.startsWith('*.');
  const name = wildcard ? host.slice(2) : host;
  if (wildcard && !name.includes('.')) return no(`*.${name} is too wide: after *. there must be two labels or more`);
  const problem = nameProblem(name);
  if (problem !== undefined) return no(problem);
  return { ok: true, pattern: { text, host: name, wildcard, port } };
}

/** The target of a CONNECT request, `<host>:<port>`; undefined for whatever else: user names, paths, shorthand of addresses, zones. */
export function parseTarget(text: string): ConnectTarget | undefined {
  if (text.length > 300) return undefined;
  const split = splitPort(text);
  if (split?.port === undefined) return undefined;
  const { host, port } = split;
  if (host.startsWith('[')) {
    const address = host.endsWith(']') ? parseAddress(host.slice(1, -1)) : undefined;
    return address?.family === 6 ? { kind: 'address', host: address.text, port } : undefined;
  }
  // Exactly one dot at the end is another spelling of the same name.
  const name = (host.endsWith('.') ? host.slice(0, -1) : host).toLowerCase();
  if (isIP(name) === 4) return name === host ? { kind: 'address', host: name, port } : undefined;
  return isName(name) ? { kind: 'name', host: name, port } : undefined;
}

export function matches(pattern: HostPattern, target: ConnectTarget): boolean {
  return pattern.port === target.port && matchesHost(pattern, target);
}

/** Whether only the port may differ. */
export function matchesHost(pattern: HostPattern, target: ConnectTarget): boolean {
  if (!pattern.wildcard) return pattern.host === target.host;
  const dot = target.host.indexOf('.');
  return target.kind === 'name' && dot > 0 && target.host.slice(dot + 1) === pattern.host;
}

/** `<host>:<port>` as one writes it. */
export function formatTarget({ host, port }: { readonly host: string; readonly port: number }): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/** Host and port of a remote tool's `url`, as a pattern; `{params.host}` and the like name none. */
export function patternOfUrl(text: string): HostReading {
  if (!/^https?:\/\/[^/?#\\@{}]+([/?#][!-~]*)?$/.test(text))
    return no('must be an http or https URL of a host, without a user name');
  const authority = /^https?:\/\/([^/?#]+)/.exec(text)?.[1] ?? '';
  const split = splitPort(authority);
  if (split?.host.startsWith('*')) return no('must name one host');
  const port = split?.port ?? (text.startsWith('https:') ? 443 : 80);
  return parseHostPattern(split?.port === undefined ? `${authority}:${port}` : authority);
}

function splitPort(text: string): { host: string; port?: number } | undefined {
  const colon = text.lastIndexOf(':');
  // Of an IPv6 address without brackets the last colon is no port's.
  if (colon < 0 || text.endsWith(']') || isIP(text) === 6) return { host: text };
  const port = text.slice(colon + 1);
  if (!PORT.test(port) || Number(port) > 65_535) return undefined;
  return { host: text.slice(0, colon), port: Number(port) };
}

function nameProblem(name: string): string | undefined {
  if (name.endsWith('.')) return 'write it without the dot at its end';
  if (name.includes('*')) return '* stands for one whole label, the first: *.example.com';
  if (/[A-Z]/.test(name)) return `write it in lower case: ${name.toLowerCase().slice(0, 100)}`;
  if (/[^ -~]/.test(name)) {
    const ascii = domainToASCII(name);
    return ascii === '' ? 'is no host name' : `write it in its ASCII form: ${ascii.slice(0, 100)}`;
  }
  if (!name.includes('.')) return 'must be a whole name, with its domain';
  if (!isName(name)) return 'is no host name';
  if (LOCAL_SUFFIXES.some((suffix) => name === suffix || name.endsWith(`.${suffix}`))) {
    return 'is a name within a machine, a cluster or a cloud; tools reach none of those';
  }
  if (METADATA_NAMES.includes(name)) return "is a cloud's metadata service, which no tool reaches";
  return undefined;
}

/** A-labels in lower case, none that a URL parser would read as a number and hence as an address. */
function isName(name: string): boolean {
  if (name.length === 0 || name.length > 253) return false;
  const labels = name.split('.');
  if (!labels.every((label) => LABEL.test(label) && isALabel(label))) return false;
  const last = labels.at(-1) ?? '';
  return !/^([0-9]+|0x[0-9a-f]*)$/.test(last);
}

/** An `xn--` label must be one that the conversion itself would write. */
function isALabel(label: string): boolean {
  if (!label.startsWith('xn--')) return true;
  const meant = domainToUnicode(label);
  return meant !== label && domainToASCII(meant) === label;
}

function no(problem: string): HostReading {
  return { ok: false, problem };
}
