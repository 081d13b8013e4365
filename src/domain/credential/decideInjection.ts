/**
 * Where secrets enter a request: the whole decision, pure. A placeholder in the one form and the one slot that a binding
 * names becomes the value; anywhere else the request is refused, and so is one that brings a credential of the tool's own
 * to a bound host, or that holds a secret's real value.
 */
import { timingSafeEqual } from 'node:crypto';
import { filled, type LiveBinding } from './binding.ts';
import { plainName, type Site } from './decideRequest.ts';
import type { Field } from './requestHead.ts';
import { compileNeedles, holds, type Needle } from './search.ts';

export type InjectionRefusal =
  /** A placeholder that is not, exactly and alone, in its slot. */
  | 'placeholder-out-of-place'
  /** A placeholder over plain http. */
  | 'placeholder-in-clear'
  /** A credential of the tool's own towards a bound host: what it sends there could end in somebody else's account. */
  | 'own-credential'
  /** A signature made with a credential: putting the value in afterwards would not make it right. */
  | 'signed-request'
  | 'duplicate-credential'
  /** The real value of a secret: the tool has learned it. */
  | 'secret-in-request'
  /** The secret is missing, empty or malformed now. */
  | 'secret-unavailable';

export type InjectionDecision =
  | {
      readonly do: 'send';
      readonly target: string;
      readonly fields: readonly Field[];
      /** Names of the secrets that were put in. */
      readonly injected: readonly string[];
    }
  | { readonly do: 'refuse'; readonly reason: InjectionRefusal };

/** What a tool may not send, compiled once for each state of the secrets. */
export interface Injection {
  readonly bindings: readonly LiveBinding[];
  readonly placeholders: readonly Needle[];
  readonly secrets: readonly Needle[];
}

export interface InjectionRequest {
  readonly target: string;
  /** End-to-end headers. */
  readonly fields: readonly Field[];
  readonly site: Pick<Site, 'host' | 'port' | 'scheme'>;
}

/** @param former values that were replaced: a host may still return them */
export function compileInjection(
  bindings: readonly LiveBinding[],
  former: readonly { value: string; placeholder: string }[] = [],
): Injection {
  const distinct = new Map(bindings.map((each) => [each.placeholder, each]));
  const current = [...distinct.values()].flatMap(({ value, placeholder }) =>
    value === undefined ? [] : [{ value: value.reveal(), instead: placeholder }],
  );
  return {
    bindings,
    placeholders: compileNeedles([...distinct.keys()].map((placeholder) => ({ value: placeholder, instead: '' }))),
    secrets: compileNeedles([...current, ...former.map(({ value, placeholder }) => ({ value, instead: placeholder }))]),
  };
}

export function decideInjection(request: InjectionRequest, injection: Injection): InjectionDecision {
  const { site } = request;
  const here = injection.bindings.filter(
    ({ binding }) => site.scheme === 'https' && binding.host === site.host && binding.port === site.port,
  );
  if (anywhere(request, injection.secrets)) return refuse('secret-in-request');
  if (site.scheme === 'http') {
    return anywhere(request, injection.placeholders) ? refuse('placeholder-in-clear') : pass(request, []);
  }
  const injected: string[] = [];
  const rest: Field[] = [];
  const fields: Field[] = [];
  const seen = new Set<string>();
  for (const field of request.fields) {
    const [name, value] = field;
    const plain = plainName(name);
    const slots = here.filter(({ binding }) => binding.in === 'header' && plainName(binding.name) === plain);
    if (slots.length === 0) {
      if (here.length > 0 && isCredentialName(plain)) {
        const found = holdsAny([name, value], injection.placeholders);
        return refuse(found ? 'placeholder-out-of-place' : 'own-credential');
      }
      fields.push(field);
      rest.push(field);
      continue;
    }
    if (seen.has(plain)) return refuse('duplicate-credential');
    seen.add(plain);
    const put = putIntoHeader(name, value, slots);
    if (put === undefined) return refuse(headerRefusal(plain, value, injection));
    if (put.value === undefined) return refuse('secret-unavailable');
    fields.push([name, put.value]);
    injected.push(put.secret);
  }
  const query = putIntoQuery(request.target, here, injection);
  if (query.do === 'refuse') return query;
  // What went into a slot is gone from these; whatever is left of a placeholder is out of its place.
  if (anywhere({ target: query.rest, fields: rest, site }, injection.placeholders)) {
    return refuse('placeholder-out-of-place');
  }
  return { do: 'send', target: query.target, fields, injected: [...injected, ...query.injected] };
}

/** The value for a slot; `value` undefined where the secret has none; undefined where the text is in no exact form. */
function putIntoHeader(
  name: string,
  text: string,
  slots: readonly LiveBinding[],
): { secret: string; value: string | undefined } | undefined {
  for (const { binding, placeholder, value } of slots) {
    // `X_Api_Key` is not the slot, however a server may read it.
    if (name.toLowerCase() !== binding.name.toLowerCase()) continue;
    if (same(text, filled(binding.format, placeholder))) {
      return { secret: binding.secret, value: value && filled(binding.format, value.reveal()) };
    }
    const basic = plainName(name) === 'authorization' ? replaceBasic(text, placeholder, value?.reveal()) : undefined;
    if (basic !== undefined) return { secret: binding.secret, value: basic.value };
  }
  return undefined;
}

/** RFC 7617, in its one canonical spelling: the placeholder is the whole user or the whole password. */
function replaceBasic(text: string, placeholder: string, value: string | undefined) {
  const encoded = /^Basic ([A-Za-z0-9+/]+={0,2})$/.exec(text)?.[1];
  if (encoded === undefined) return undefined;
  const bytes = Buffer.from(encoded, 'base64');
  const pair = bytes.toString('latin1');
  const colon = pair.indexOf(':');
  if (bytes.toString('base64') !== encoded || colon < 0) return undefined;
  const user = pair.slice(0, colon);
  const password = pair.slice(colon + 1);
  const asUser = same(user, placeholder);
  if (asUser === same(password, placeholder)) return undefined;
  if ((asUser ? password : user).toLowerCase().includes(placeholder.toLowerCase())) return undefined;
  // A colon in a user's name would move the border between the two.
  if (value === undefined || (asUser && value.includes(':'))) return { value: undefined };
  return {
    value: `Basic ${Buffer.from(asUser ? `${value}:${password}` : `${user}:${value}`, 'latin1').toString('base64')}`,
  };
}

type QueryDecision =
  | { readonly do: 'send'; readonly target: string; readonly rest: string; readonly injected: readonly string[] }
  | Extract<InjectionDecision, { do: 'refuse' }>;

function putIntoQuery(target: string, here: readonly LiveBinding[], injection: Injection): QueryDecision {
  const mark = target.indexOf('?');
  if (here.length === 0 || mark < 0) return { do: 'send', target, rest: target, injected: [] };
  const slots = here.filter(({ binding }) => binding.in === 'query');
  const injected: string[] = [];
  const rest: string[] = [];
  const sent: string[] = [];
  const seen = new Set<string>();
  for (const part of target.slice(mark + 1).split('&')) {
    const equals = part.indexOf('=');
    const name = equals < 0 ? part : part.slice(0, equals);
    const text = equals < 0 ? '' : part.slice(equals + 1);
    const plain = decoded(name).toLowerCase();
    const named = slots.filter(({ binding }) => binding.name.toLowerCase() === plain);
    if (named.length === 0) {
      if (CREDENTIAL_PARAMETERS.has(plain)) {
        const signed = plain.startsWith('x-amz-') || plain.startsWith('x-goog-');
        const found = holdsAny([text], injection.placeholders);
        return refuse(signed ? 'signed-request' : found ? 'placeholder-out-of-place' : 'own-credential');
      }
      rest.push(part);
      sent.push(part);
      continue;
    }
    if (seen.has(plain)) return refuse('duplicate-credential');
    seen.add(plain);
    const slot = named.find(
      ({ binding, placeholder }) =>
        binding.name === name && same(text, encodeURIComponent(filled(binding.format, placeholder))),
    );
    if (slot === undefined) {
      return refuse(holdsAny([part], injection.placeholders) ? 'placeholder-out-of-place' : 'own-credential');
    }
    if (slot.value === undefined) return refuse('secret-unavailable');
    sent.push(`${name}=${encodeURIComponent(filled(slot.binding.format, slot.value.reveal()))}`);
    injected.push(slot.binding.secret);
  }
  const path = target.slice(0, mark + 1);
  return { do: 'send', target: path + sent.join('&'), rest: path + rest.join('&'), injected };
}

function headerRefusal(plain: string, value: string, injection: Injection): InjectionRefusal {
  // AWS SigV4, OAuth 1, HTTP signatures and their like.
  if (plain === 'authorization' && /^(?:AWS[0-9]|OAuth |Hawk |Digest |Signature |DPoP |MAC |EG1-)/i.test(value)) {
    return 'signed-request';
  }
  return holdsAny([value], injection.placeholders) ? 'placeholder-out-of-place' : 'own-credential';
}

function anywhere({ target, fields }: InjectionRequest, needles: readonly Needle[]): boolean {
  return holdsAny([target, ...fields.map(([name, value]) => `${name}: ${value}`)], needles, fields);
}

/** Whether a value is in one of the texts: as it is, percent-decoded, base64 inside of base64, or split over several. */
function holdsAny(texts: readonly string[], needles: readonly Needle[], fields: readonly Field[] = []): boolean {
  if (needles.length === 0) return false;
  const seen = [...texts];
  for (const text of texts) {
    if (text.includes('%')) seen.push(decoded(text), decoded(decoded(text)));
    for (const [run] of text.matchAll(/[A-Za-z0-9+/_-]{16,}/g))
      seen.push(Buffer.from(run, 'base64').toString('latin1'));
  }
  seen.push(fields.map(([, value]) => value).join(''));
  return holds(seen.join('\n'), needles);
}

/** Percent-decoded where it can be; bytes, not characters. */
function decoded(text: string): string {
  return text.replace(/%([0-9A-Fa-f]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
}

function same(left: string, right: string): boolean {
  return left.length === right.length && timingSafeEqual(Buffer.from(left, 'latin1'), Buffer.from(right, 'latin1'));
}

/** C06's rule for a header that carries a credential; an idempotency key is none, nor is what only contains such letters. */
export function isCredentialName(plain: string): boolean {
  if (NO_CREDENTIAL.has(plain)) return false;
  const words = plain.split('-');
  if (words.some((word) => CREDENTIAL_WORDS.has(word))) return true;
  return /(?:token|apikey|secret|password|passwd|accesskey|authkey)$/.test(plain);
}

const NO_CREDENTIAL: ReadonlySet<string> = new Set([
  'idempotency-key',
  'x-idempotency-key',
  'sec-websocket-key',
  'www-authenticate',
]);
const CREDENTIAL_WORDS: ReadonlySet<string> = new Set([
  'auth',
  'authorization',
  'authentication',
  'token',
  'tokens',
  'key',
  'keys',
  'apikey',
  'secret',
  'cookie',
  'cookie2',
  'password',
  'credential',
  'credentials',
  'dpop',
  'jwt',
  'bearer',
  'signature',
]);
const CREDENTIAL_PARAMETERS: ReadonlySet<string> = new Set([
  'access_token',
  'api_key',
  'apikey',
  'api-key',
  'auth_token',
  'client_secret',
  'x-amz-signature',
  'x-amz-credential',
  'x-amz-security-token',
  'x-goog-signature',
  'x-goog-credential',
]);

function pass(request: InjectionRequest, injected: readonly string[]): InjectionDecision {
  return { do: 'send', target: request.target, fields: request.fields, injected };
}

function refuse(reason: InjectionRefusal): Extract<InjectionDecision, { do: 'refuse' }> {
  return { do: 'refuse', reason };
}
