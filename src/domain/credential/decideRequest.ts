/**
 * Whether a request may go on as HTTP: where it says it goes, how its body is framed, what it asks of hops. What Node's
 * parser lets through and two readers could understand differently is refused here. Pure.
 */
import { type Field, type RequestHead, valuesOf } from './requestHead.ts';
import { type BodyFraming, readLength } from './responseHead.ts';

/** A host and port as the request's own words must name it. */
export interface Site {
  /** Lower-case A-labels. */
  readonly host: string;
  readonly port: number;
  readonly scheme: 'http' | 'https';
  /** Whether a WebSocket may be opened. */
  readonly websocket: boolean;
}

export type RequestRefusal =
  | 'unsupported-version'
  | 'method-not-allowed'
  | 'bad-target'
  | 'wrong-host'
  | 'bad-framing'
  | 'body-not-allowed'
  | 'bad-connection-header'
  | 'upgrade-not-allowed'
  | 'expectation-not-met'
  | 'trailers-not-allowed'
  | 'look-alike-header'
  | 'unknown-body-encoding';

export type RequestDecision =
  | {
      readonly do: 'send';
      /** End-to-end headers only; framing, connection and encoding are written anew by whoever sends. */
      readonly fields: readonly Field[];
      readonly framing: Exclude<BodyFraming, { kind: 'until-close' }>;
      readonly keepAlive: boolean;
      readonly websocket: boolean;
      /** The tool waits for a word before it sends the body: it gets it from us, once the head was decided on. */
      readonly expectsContinue: boolean;
      /** Of the body, where it is compressed. */
      readonly encoding: BodyEncoding | undefined;
    }
  | { readonly do: 'refuse'; readonly reason: RequestRefusal };

export const BODY_ENCODINGS = ['gzip', 'deflate', 'br', 'zstd'] as const;
export type BodyEncoding = (typeof BODY_ENCODINGS)[number];

/** TRACE returns what we put in; CONNECT inside of a tunnel is another proxy's. */
const REFUSED_METHODS: ReadonlySet<string> = new Set(['CONNECT', 'TRACE', 'PRI']);
const BODILESS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS']);
/** For one hop, or rewritten for the next one. A part of an answer could end inside of a secret: no ranges. */
const NOT_FORWARDED: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'proxy-authorization',
  'te',
  'upgrade',
  'host',
  'content-length',
  'transfer-encoding',
  'accept-encoding',
  'expect',
  'range',
  'if-range',
]);
/** Names that some server reads as these are these, or nothing. */
const SENSITIVE: ReadonlySet<string> = new Set([
  'host',
  'connection',
  'content-length',
  'transfer-encoding',
  'upgrade',
  'expect',
  'te',
  'trailer',
]);

export function decideRequest(head: RequestHead, site: Site): RequestDecision {
  if (head.minorVersion !== 1) return refuse('unsupported-version');
  if (REFUSED_METHODS.has(head.method)) return refuse('method-not-allowed');
  // Origin form only. A fragment is never sent, and a backslash is a slash to some.
  if (!head.target.startsWith('/') || /[#\\]/.test(head.target)) return refuse('bad-target');
  const hosts = valuesOf(head.fields, 'host');
  if (hosts.length !== 1 || hosts[0] !== authorityOf(site)) return refuse('wrong-host');
  for (const [name] of head.fields) {
    const plain = plainName(name);
    if (SENSITIVE.has(plain) && plain !== name.toLowerCase()) return refuse('look-alike-header');
  }
  if (valuesOf(head.fields, 'trailer').length > 0) return refuse('trailers-not-allowed');

  const framing = requestFraming(head);
  if (framing === undefined) return refuse('bad-framing');
  const hasBody = framing.kind === 'chunked' || (framing.kind === 'length' && framing.bytes > 0);
  if (hasBody && BODILESS.has(head.method)) return refuse('body-not-allowed');

  const expected = valuesOf(head.fields, 'expect');
  if (expected.length > 0 && !(hasBody && expected.join() === '100-continue')) return refuse('expectation-not-met');

  const encodings = valuesOf(head.fields, 'content-encoding').map((value) => value.toLowerCase());
  const [encoding = 'identity', ...more] = encodings;
  const known = BODY_ENCODINGS.find((each) => each === encoding);
  if (more.length > 0 || (known === undefined && encoding !== 'identity')) return refuse('unknown-body-encoding');

  const connection = readConnection(head.fields);
  if (connection === undefined) return refuse('bad-connection-header');
  const upgrades = valuesOf(head.fields, 'upgrade');
  const websocket = upgrades.length === 1 && upgrades[0]?.toLowerCase() === 'websocket';
  if (upgrades.length > 0 || connection.upgrade) {
    const allowed = websocket && connection.upgrade && site.websocket && head.method === 'GET' && !hasBody;
    if (!allowed) return refuse('upgrade-not-allowed');
  }
  return {
    do: 'send',
    fields: head.fields.filter(([name]) => !NOT_FORWARDED.has(name.toLowerCase())),
    framing,
    keepAlive: !connection.close,
    websocket,
    expectsContinue: expected.length > 0,
    encoding: hasBody ? known : undefined,
  };
}

/** What Host must say: the port only where it is not the scheme's. */
export function authorityOf(site: Pick<Site, 'host' | 'port' | 'scheme'>): string {
  return site.port === (site.scheme === 'https' ? 443 : 80) ? site.host : `${site.host}:${site.port}`;
}

/** `Content_Length` → `content-length`: how a server that maps names to variables reads it. */
export function plainName(name: string): string {
  return name.toLowerCase().replace(/[^a-z0-9]/g, '-');
}

function requestFraming(head: RequestHead): Exclude<BodyFraming, { kind: 'until-close' }> | undefined {
  const lengths = valuesOf(head.fields, 'content-length');
  const codings = valuesOf(head.fields, 'transfer-encoding');
  if (codings.length > 0) {
    return codings.length === 1 && codings[0] === 'chunked' && lengths.length === 0 ? { kind: 'chunked' } : undefined;
  }
  if (lengths.length === 0) return { kind: 'none' };
  const bytes = readLength(lengths);
  return bytes === null ? undefined : { kind: 'length', bytes };
}

/** Undefined for anything but the known words: whatever else is named there asks a hop to drop that header. */
function readConnection(fields: readonly Field[]): { close: boolean; upgrade: boolean } | undefined {
  const words = valuesOf(fields, 'connection')
    .join(',')
    .toLowerCase()
    .split(',')
    .map((word) => word.trim())
    .filter((word) => word !== '');
  if (words.some((word) => !['keep-alive', 'close', 'te', 'upgrade'].includes(word))) return undefined;
  return { close: words.includes('close'), upgrade: words.includes('upgrade') };
}

function refuse(reason: RequestRefusal): RequestDecision {
  return { do: 'refuse', reason };
}
