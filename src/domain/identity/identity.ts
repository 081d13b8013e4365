/**
 * Who a part of the system is, as its certificate says (one SPIFFE URI in the subject alternative names).
 * Pure; parsing refuses whatever is not exactly one of the forms below.
 */

export type Identity =
  | { readonly kind: 'tool'; readonly namespace: string; readonly tool: string; readonly podUid: string }
  | { readonly kind: 'gateway'; readonly node: string }
  | { readonly kind: 'egress' }
  | { readonly kind: 'edge' }
  | { readonly kind: 'controller' };

const SEGMENT = /^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/;

/** `spiffe://<trust domain>/ns/<namespace>/tool/<name>/pod/<uid>`, `…/gateway/node/<node>`, `…/egress`, `…/edge`, `…/controller`. */
export function formatIdentity(trustDomain: string, identity: Identity): string {
  const base = `spiffe://${trustDomain}`;
  switch (identity.kind) {
    case 'tool':
      return `${base}/ns/${identity.namespace}/tool/${identity.tool}/pod/${identity.podUid}`;
    case 'gateway':
      return `${base}/gateway/node/${identity.node}`;
    default:
      return `${base}/${identity.kind}`;
  }
}

/** The identity that a URI names in this trust domain, or undefined for anything else. */
export function parseIdentity(trustDomain: string, uri: string): Identity | undefined {
  const prefix = `spiffe://${trustDomain}/`;
  if (!uri.startsWith(prefix)) return undefined;
  const segments = uri.slice(prefix.length).split('/');
  if (!segments.every((segment) => SEGMENT.test(segment))) return undefined;
  const [a, b, c, d, e, f] = segments;
  if (segments.length === 6 && a === 'ns' && c === 'tool' && e === 'pod' && b && d && f) {
    return { kind: 'tool', namespace: b, tool: d, podUid: f };
  }
  if (segments.length === 3 && a === 'gateway' && b === 'node' && c) return { kind: 'gateway', node: c };
  if (segments.length === 1 && (a === 'egress' || a === 'edge' || a === 'controller')) return { kind: a };
  return undefined;
}
