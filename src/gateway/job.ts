/** The job that a call is a part of, as far as the caller says. Pure. */
import type { JsonObject } from '../mcp/wire/jsonrpc.ts';
import { META_JOB_ID, META_STARTED_BY } from '../mcp/wire/meta.ts';
import type { Principal } from './principal.ts';

export interface Job {
  /** As the agent named it; undefined where it named none: then its pod is the job. */
  readonly id?: string;
  readonly startedBy?: string;
  /** Whether who started it was said by an Agent whose word on that is believed. */
  readonly proved: boolean;
}

/** Plain enough for a log line, a label and an object's field. */
const ID = /^[A-Za-z0-9][A-Za-z0-9._:/@-]{0,127}$/;
/** A user name, as the API server or an identity provider writes one. */
const USER = /^[\x21-\x7e]{1,256}$/;

export function jobOf(meta: JsonObject, mayAssertStarter: boolean): Job {
  const id = meta[META_JOB_ID];
  const startedBy = meta[META_STARTED_BY];
  const said = typeof startedBy === 'string' && USER.test(startedBy) ? startedBy : undefined;
  return {
    ...(typeof id === 'string' && ID.test(id) ? { id } : {}),
    ...(said === undefined ? {} : { startedBy: said }),
    proved: said !== undefined && mayAssertStarter,
  };
}

/** Equal for calls of one job of one caller. */
export function jobKey(principal: Principal, job: Job): string {
  return job.id === undefined ? `pod ${principal.podUid ?? ''}` : `job ${job.id}`;
}
