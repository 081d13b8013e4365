/**
 * All addresses of a name, from DNS alone: both families, one question each, no search list, no hosts file, in bounded time and
 * number. Other kinds of records (HTTPS, SVCB) are never asked for. Says nothing about whether an address may be dialled.
 */
import { Resolver } from 'node:dns/promises';

export type Resolution =
  | { readonly kind: 'addresses'; readonly addresses: readonly string[] }
  /** The name does not exist, or has no address. */
  | { readonly kind: 'none' }
  /** A resolver's failure, such as `ESERVFAIL` or `ECONNREFUSED`. */
  | { readonly kind: 'failed'; readonly code: string }
  | { readonly kind: 'timeout' }
  /** More addresses than any host has. */
  | { readonly kind: 'too-many' };

export type Resolve = (name: string) => Promise<Resolution>;

export interface ResolverOptions {
  /** `<address>` or `<address>:<port>`; unset: the system's. */
  readonly servers?: readonly string[];
  /** For the whole name, in milliseconds. */
  readonly timeoutMs?: number;
  readonly maxAddresses?: number;
}

const TIMEOUT_MS = 5_000;
const TRIES = 3;
const MAX_ADDRESSES = 64;

export function createResolver(options: ResolverOptions = {}): Resolve {
  const timeoutMs = options.timeoutMs ?? TIMEOUT_MS;
  const maxAddresses = options.maxAddresses ?? MAX_ADDRESSES;
  // Later tries wait longer; the deadline below is what counts.
  const resolver = new Resolver({ timeout: Math.max(50, Math.ceil(timeoutMs / TRIES)), tries: TRIES });
  if (options.servers !== undefined) resolver.setServers(options.servers);
  return async (name) => {
    // These functions ask for the name as it is: only `lookup` has a search list and reads the hosts file.
    const asked = Promise.all([answer(resolver.resolve4(name)), answer(resolver.resolve6(name))]);
    const both = await withinTime(asked, timeoutMs);
    if (both === undefined) return { kind: 'timeout' };
    // One family that could not be asked may hold the address that would refuse the name.
    const failed = both.find((each) => each.kind === 'failed' || each.kind === 'timeout');
    if (failed !== undefined) return failed;
    const addresses = both.flatMap((each) => (each.kind === 'addresses' ? each.addresses : []));
    if (addresses.length > maxAddresses) return { kind: 'too-many' };
    return addresses.length === 0 ? { kind: 'none' } : { kind: 'addresses', addresses: [...new Set(addresses)] };
  };
}

async function answer(asked: Promise<string[]>): Promise<Resolution> {
  try {
    return { kind: 'addresses', addresses: await asked };
  } catch (error) {
    const code = error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : 'unknown';
    if (code === 'ENOTFOUND' || code === 'ENODATA') return { kind: 'none' };
    return code === 'ETIMEOUT' ? { kind: 'timeout' } : { kind: 'failed', code };
  }
}

/** Undefined when time is up; what is still asked then ends by the resolver's own limits. */
function withinTime<T>(promise: Promise<T>, ms: number): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => resolve(undefined), ms);
    promise.finally(() => clearTimeout(timer)).then(resolve, reject);
  });
}
