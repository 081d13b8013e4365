/**
 * Bearer token → principal, by the API server's TokenReview. A token is bound to its pod, so asking (and not checking a
 * signature here) is what makes a deleted pod's token end. Answers are kept for seconds by the token's hash, never past
 * the token's own expiry; every limit closes, none opens.
 */
import { hash } from 'node:crypto';
import { createInFlight } from '../domain/inFlight.ts';
import { type Principal, principalOf, type ReviewedUser } from './principal.ts';

export type Review = { readonly authenticated: true; readonly user: ReviewedUser } | { readonly authenticated: false };

export type Authentication =
  | { readonly ok: true; readonly principal: Principal }
  /** `unauthenticated`: not a valid token for us. `not-a-service-account`: valid, but nobody that we serve. */
  | { readonly ok: false; readonly reason: 'unauthenticated' | 'not-a-service-account' | 'unavailable' | 'overloaded' };

export interface AuthenticateOptions {
  /** Asks the API server, for our audience alone; throws where it could not. */
  readonly review: (token: string, signal: AbortSignal) => Promise<Review>;
  /** Milliseconds since the epoch. */
  readonly now?: () => number;
  readonly keepMs?: number;
  /** How long a refusal is kept: long enough to spare the API server, short enough for a token just made valid. */
  readonly keepRefusedMs?: number;
  readonly maxEntries?: number;
  /** Reviews at once; further tokens that are not known are turned away. */
  readonly maxReviews?: number;
  /** Of these, those of tokens from one address: anybody can write what looks like a token. */
  readonly maxReviewsPerSource?: number;
  readonly reviewTimeoutMs?: number;
  readonly onReview?: (outcome: 'authenticated' | 'refused' | 'failed' | 'overloaded') => void;
}

export interface Authenticator {
  readonly authenticate: (
    authorization: string | undefined,
    source?: string,
    /** Of the same connection, the same header is not hashed again. */
    connection?: object,
  ) => Authentication | Promise<Authentication>;
  /** Tokens remembered. */
  readonly size: () => number;
}

interface Entry {
  readonly answer: Authentication;
  readonly untilMs: number;
}

const BEARER = /^Bearer +([A-Za-z0-9._~+/-]+=*)$/i;
const MAX_TOKEN_CHARS = 16 * 1024;
const UNAUTHENTICATED: Authentication = { ok: false, reason: 'unauthenticated' };

export function createAuthenticator(options: AuthenticateOptions): Authenticator {
  const now = options.now ?? Date.now;
  const keepMs = options.keepMs ?? 10_000;
  const keepRefusedMs = options.keepRefusedMs ?? 1_500;
  const maxEntries = options.maxEntries ?? 4_096;
  const maxReviews = options.maxReviews ?? 32;
  const reviewsOf = createInFlight(options.maxReviewsPerSource ?? maxReviews / 4);
  const reviewTimeoutMs = options.reviewTimeoutMs ?? 5_000;
  /** In order of use, oldest first. */
  const kept = new Map<string, Entry>();
  const asking = new Map<string, Promise<Authentication>>();
  /** The valid header that each connection sent last; no token is held for longer than a connection that sent it. */
  const sent = new WeakMap<object, { readonly authorization: string; readonly key: string }>();

  const keyOf = (authorization: string, connection: object | undefined): string | undefined => {
    const last = connection === undefined ? undefined : sent.get(connection);
    if (last?.authorization === authorization) return last.key;
    const token = tokenOf(authorization);
    return token === undefined ? undefined : hash('sha256', token, 'base64');
  };

  const keep = (key: string, answer: Authentication, untilMs: number): void => {
    kept.delete(key);
    kept.set(key, { answer, untilMs });
    for (const oldest of kept.keys()) {
      if (kept.size <= maxEntries) break;
      kept.delete(oldest);
    }
  };

  const ask = async (token: string, key: string): Promise<Authentication> => {
    const askedMs = now();
    const expiresMs = expiryOf(token);
    if (expiresMs <= askedMs) return UNAUTHENTICATED;
    let review: Review;
    try {
      review = await options.review(token, AbortSignal.timeout(reviewTimeoutMs));
    } catch {
      options.onReview?.('failed');
      return { ok: false, reason: 'unavailable' };
    }
    options.onReview?.(review.authenticated ? 'authenticated' : 'refused');
    const principal = review.authenticated ? principalOf(review.user) : undefined;
    const answer: Authentication =
      principal !== undefined
        ? { ok: true, principal }
        : { ok: false, reason: review.authenticated ? 'not-a-service-account' : 'unauthenticated' };
    // Counted from when it was asked: the answer is as old as the question.
    keep(key, answer, Math.min(askedMs + (answer.ok ? keepMs : keepRefusedMs), expiresMs));
    return answer;
  };

  return {
    authenticate: (authorization, source = '', connection) => {
      if (authorization === undefined || authorization.length > MAX_TOKEN_CHARS) return UNAUTHENTICATED;
      const key = keyOf(authorization, connection);
      if (key === undefined) return UNAUTHENTICATED;
      const entry = kept.get(key);
      if (entry !== undefined) {
        if (entry.untilMs > now()) {
          if (entry.answer.ok && connection !== undefined && sent.get(connection)?.authorization !== authorization) {
            sent.set(connection, { authorization, key });
          }
          return entry.answer;
        }
        kept.delete(key);
      }
      const running = asking.get(key);
      if (running !== undefined) return running;
      const leave = asking.size < maxReviews ? reviewsOf.enter(source) : undefined;
      if (leave === undefined) {
        options.onReview?.('overloaded');
        return { ok: false, reason: 'overloaded' };
      }
      const answer = ask(tokenOf(authorization) ?? '', key).finally(() => {
        asking.delete(key);
        leave();
      });
      asking.set(key, answer);
      return answer;
    },
    size: () => kept.size,
  };
}

function tokenOf(authorization: string): string | undefined {
  return BEARER.exec(authorization)?.[1];
}

/** When a token says that it ends, in milliseconds since the epoch. Not proved: it can only shorten what is kept. */
function expiryOf(token: string): number {
  try {
    const payload: unknown = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8'));
    const exp = payload !== null && typeof payload === 'object' && 'exp' in payload ? payload.exp : undefined;
    return typeof exp === 'number' ? exp * 1_000 : Number.POSITIVE_INFINITY;
  } catch {
    return Number.POSITIVE_INFINITY;
  }
}
