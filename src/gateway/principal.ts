/** Who a caller is, from the API server's review of its token. Pure. Only ServiceAccounts are callers so far. */

export interface Principal {
  readonly namespace: string;
  readonly serviceAccount: string;
  /** Of the pod that the token is bound to; undefined for a token without a pod. */
  readonly podUid: string | undefined;
  /** Node of that pod. */
  readonly node: string | undefined;
}

/** What a TokenReview said, once the audience was found to be ours. */
export interface ReviewedUser {
  readonly username: string;
  readonly extra: Readonly<Record<string, string>>;
}

const SERVICE_ACCOUNT = /^system:serviceaccount:([a-z0-9-]{1,63}):([a-z0-9.-]{1,253})$/;

/** Undefined for a user that is no ServiceAccount. */
export function principalOf(user: ReviewedUser): Principal | undefined {
  const [, namespace, serviceAccount] = SERVICE_ACCOUNT.exec(user.username) ?? [];
  if (namespace === undefined || serviceAccount === undefined) return undefined;
  return {
    namespace,
    serviceAccount,
    podUid: user.extra['authentication.kubernetes.io/pod-uid'],
    node: user.extra['authentication.kubernetes.io/node-name'],
  };
}

/** A text that is equal for equal principals only: Kubernetes' names hold no `/`. */
export function principalKey(principal: Principal): string {
  return `${principal.namespace}/${principal.serviceAccount}/${principal.podUid ?? ''}`;
}

/** The same for all pods of an account. */
export function accountKey(principal: Principal): string {
  return `${principal.namespace}/${principal.serviceAccount}`;
}
