/**
 * The headers that a remote server gets with every request: those that were declared, with `${SECRET}` filled in at
 * the time of the request, and what bindings put in for the URL's host. A bound secret goes to its own host
 * or nowhere. The transport's headers are ours.
 */
import type { SecretBinding, SecretProblem } from '../../domain/config/sidecar.ts';
import { compileNeedles, masked, type Needle } from '../../domain/credential/search.ts';
import { SECRET_MARK, type Secret } from '../../domain/credential/secret.ts';

export interface SecretsNow {
  readonly values: ReadonlyMap<string, Secret>;
  readonly problems: readonly { readonly name: string; readonly problem: SecretProblem }[];
}

export interface HeaderSources {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly bindings: readonly SecretBinding[];
  /** The secrets as they are mounted now. */
  readonly secretsNow: () => SecretsNow;
}

export type FilledHeaders =
  | {
      readonly ok: true;
      readonly headers: Readonly<Record<string, string>>;
      /** What bindings add to the URL's query, encoded; empty where there is nothing. */
      readonly query: string;
      /** Takes the values out of what the server says. */
      readonly redact: (text: string) => string;
    }
  | { readonly ok: false; readonly problem: string };

/** Set by HTTP or MCP itself, or read in more than one way on the path. */
const TRANSPORT =
  /^(?:host|accept|accept-encoding|content-.*|mcp-.*|last-event-id|connection|keep-alive|transfer-encoding|te|trailer|upgrade|expect|proxy-.*|sec-.*|http2-settings|via|forwarded|x-forwarded-.*|date|origin)$/;
const NAME = /^[a-z][a-z0-9-]{0,63}$/;
const VALUE = /^(?:[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?)?$/;
const REFERENCE = /\$\{([A-Za-z_][A-Za-z0-9_]*)\}/g;
const SLOT = /\$\{value\}/;
const LONGEST_VALUE = 16 * 1024;

export function isTransportHeader(name: string): boolean {
  return TRANSPORT.test(name.toLowerCase());
}

/** @returns fills them anew at each call, since secrets change while the pod runs */
export function createHeaders(sources: HeaderSources): () => FilledHeaders {
  const host = sources.url.hostname;
  const port = sources.url.port === '' ? 443 : Number(sources.url.port);
  const bound = sources.bindings.filter((binding) => binding.host === host && binding.port === port);
  const elsewhere = new Map(
    sources.bindings
      .filter((binding) => !bound.some((here) => here.secret === binding.secret))
      .map((binding) => [binding.secret, binding.host]),
  );
  const slots = new Set(bound.filter((each) => each.in === 'header').map((each) => each.name.toLowerCase()));
  // What is bound wins, and then what the header would have needed is not needed.
  const declared = Object.entries(sources.headers)
    .map(([name, value]) => [name.toLowerCase(), value] as const)
    .filter(([name]) => !slots.has(name));
  const wanted = new Set([
    ...declared.flatMap(([, value]) => [...value.matchAll(REFERENCE)].map(([, name = '']) => name)),
    ...bound.map((binding) => binding.secret),
  ]);
  let needlesOf: { readonly values: string; readonly needles: readonly Needle[] } = { values: '', needles: [] };

  return () => {
    const now = sources.secretsNow();
    const values = new Map<string, string>();
    for (const name of wanted) {
      const home = elsewhere.get(name);
      if (home !== undefined) return no(`the secret ${name} is bound to ${home}, and does not go to ${host}`);
      // A newline at the end is an editor's.
      const value = now.values
        .get(name)
        ?.reveal()
        .replace(/\r?\n$/, '');
      if (value !== undefined) values.set(name, value);
    }
    const absent = [...wanted].filter((name) => !values.has(name));
    if (absent.length > 0) {
      const why = (name: string) => now.problems.find((each) => each.name === name)?.problem ?? 'missing';
      return no(absent.map((name) => `the secret ${name} is ${why(name)}`).join('; '));
    }
    const headers: Record<string, string> = {};
    for (const [name, template] of declared) {
      const value = template.replace(REFERENCE, (_, secret: string) => values.get(secret) ?? '');
      if (!isTransportHeader(name)) headers[name] = value;
    }
    const query: string[] = [];
    for (const binding of bound) {
      const value = binding.format.replace(SLOT, () => values.get(binding.secret) ?? '');
      const name = binding.name.toLowerCase();
      if (binding.in === 'query') query.push(`${encodeURIComponent(binding.name)}=${encodeURIComponent(value)}`);
      else if (!isTransportHeader(name)) headers[name] = value;
    }
    for (const [name, value] of Object.entries(headers)) {
      if (!NAME.test(name) || !VALUE.test(value) || value.length > LONGEST_VALUE) {
        return no(`the header ${name.slice(0, 64)} cannot be sent as it is written`);
      }
    }
    const key = JSON.stringify([...values.values()]);
    if (needlesOf.values !== key) {
      const instead = [...values.values()].map((value) => ({ value, instead: SECRET_MARK }));
      needlesOf = { values: key, needles: compileNeedles(instead) };
    }
    const { needles } = needlesOf;
    return {
      ok: true,
      headers,
      query: query.join('&'),
      redact: (text) => (needles.length === 0 ? text : redactText(text, needles)),
    };
  };
}

function no(problem: string): FilledHeaders {
  return { ok: false, problem };
}

function redactText(text: string, needles: readonly Needle[]): string {
  // `masked` reads text byte by byte.
  const bytes = Buffer.from(text, 'utf8').toString('latin1');
  return Buffer.from(masked(bytes, needles), 'latin1').toString('utf8');
}
