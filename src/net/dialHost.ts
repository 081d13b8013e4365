/**
 * The one way to what is outside: resolves a host, has every one of its addresses judged, and dials one of exactly those. One
 * address that is refused refuses the host; an address as a host takes the same path; nothing is resolved twice. [I5]
 */
import type { Socket } from 'node:net';
import type { AddressVerdict, NetworkClass } from '../domain/egress/judgeAddress.ts';
import { dial } from './dial.ts';
import type { Resolve } from './resolve.ts';

export interface HostOptions {
  /** A name (absolute, without a dot at its end) or an address; `kind` says which. */
  readonly target: { readonly kind: 'name' | 'address'; readonly host: string; readonly port: number };
  readonly judge: (address: string) => AddressVerdict;
  readonly resolve: Resolve;
  readonly signal: AbortSignal;
  readonly timeoutMs?: number;
  readonly fallbackMs?: number;
}

export type HostDialled =
  | {
      readonly kind: 'connected';
      readonly socket: Socket;
      readonly address: string;
      readonly class: NetworkClass;
      /** Only because the admin opened its network. */
      readonly opened: boolean;
    }
  | { readonly kind: 'address-refused'; readonly address: string; readonly class: NetworkClass }
  | { readonly kind: 'no-such-name' }
  | { readonly kind: 'too-many-addresses' }
  | { readonly kind: 'dns-failed'; readonly code: string }
  | { readonly kind: 'dns-timeout' }
  | { readonly kind: 'connect-failed'; readonly code: string }
  | { readonly kind: 'connect-timeout' }
  | { readonly kind: 'aborted' };

export async function dialHost(options: HostOptions): Promise<HostDialled> {
  const { target, signal } = options;
  let addresses: readonly string[] = [target.host];
  if (target.kind === 'name') {
    const resolution = await options.resolve(target.host);
    switch (resolution.kind) {
      case 'addresses':
        addresses = resolution.addresses;
        break;
      case 'none':
        return { kind: 'no-such-name' };
      case 'too-many':
        return { kind: 'too-many-addresses' };
      case 'failed':
        return { kind: 'dns-failed', code: resolution.code };
      case 'timeout':
        return { kind: 'dns-timeout' };
    }
  }
  const judged = new Map<string, Extract<AddressVerdict, { kind: 'dial' }>>();
  for (const address of addresses) {
    const verdict = options.judge(address);
    if (verdict.kind === 'refuse') return { kind: 'address-refused', address, class: verdict.class };
    judged.set(verdict.address, verdict);
  }
  const dialled = await dial({
    addresses: [...judged.keys()],
    port: target.port,
    signal,
    ...(options.timeoutMs === undefined ? {} : { timeoutMs: options.timeoutMs }),
    ...(options.fallbackMs === undefined ? {} : { fallbackMs: options.fallbackMs }),
  });
  switch (dialled.kind) {
    case 'connected': {
      const verdict = judged.get(dialled.address);
      // Unreachable while `dial` keeps its word.
      if (verdict === undefined) {
        dialled.socket.destroy();
        return { kind: 'connect-failed', code: 'other-address' };
      }
      return {
        kind: 'connected',
        socket: dialled.socket,
        address: dialled.address,
        class: verdict.class,
        opened: verdict.opened,
      };
    }
    case 'failed':
      return { kind: 'connect-failed', code: dialled.code };
    case 'timeout':
      return { kind: 'connect-timeout' };
    case 'aborted':
      return { kind: 'aborted' };
  }
}
