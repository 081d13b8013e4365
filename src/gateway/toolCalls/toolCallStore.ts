/**
 * ToolCalls at the API server: each read and write bounded, each write conditional on the version that was read, and told
 * as what is known of it afterwards. What fails is counted, so that calls which must be written are refused before the API
 * server suffers from them.
 */

import { ApiError, isAmbiguous } from '../../engine/api-error.ts';
import type { KubeObject } from '../../engine/contract.ts';
import type { ApiDoor } from '../../engine/door.ts';
import type { Breaker } from './breaker.ts';
import { TOOL_CALL } from './toolCallObject.ts';

export type Written =
  | { readonly came: 'written'; readonly object: KubeObject }
  | { readonly came: 'conflict' }
  /** It may have happened; or it did not, and may be tried again. */
  | { readonly came: 'lost'; readonly problem: string }
  /** It did not happen, and would not if it were tried again. */
  | { readonly came: 'refused'; readonly problem: string };

export type Read =
  | { readonly came: 'read'; readonly object: KubeObject }
  | { readonly came: 'absent' }
  | { readonly came: 'failed'; readonly problem: string };

export interface ToolCallStore {
  readonly create: (object: KubeObject) => Promise<Written>;
  readonly read: (namespace: string, name: string) => Promise<Read>;
  /** `metadata.resourceVersion` must be the current one. */
  readonly writeStatus: (object: KubeObject) => Promise<Written>;
}

export type ToolCallDoor = Pick<ApiDoor, 'create' | 'get' | 'replaceStatus'>;

const TIMEOUT_MS = 3_000;

export function createToolCallStore(door: ToolCallDoor, breaker: Breaker, timeoutMs = TIMEOUT_MS): ToolCallStore {
  const write = async (absent: 'conflict' | 'refused', send: () => Promise<KubeObject>): Promise<Written> => {
    const ended = breaker.begin();
    try {
      const object = await send();
      ended('ok');
      return { came: 'written', object };
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      const { code, message } = error;
      ended(isBurden(error) ? 'bad' : 'ok');
      if (code === 'notFound') return absent === 'conflict' ? { came: absent } : { came: absent, problem: message };
      if (code === 'conflict' || code === 'exists' || code === 'gone') return { came: 'conflict' };
      if (isAmbiguous(code) || code === 'tooManyRequests') return { came: 'lost', problem: message };
      return { came: 'refused', problem: message };
    }
  };
  return {
    create: (object) => write('refused', () => door.create(TOOL_CALL, object, { timeoutMs })),
    writeStatus: (object) => write('conflict', () => door.replaceStatus(TOOL_CALL, object, { timeoutMs })),
    read: async (namespace, name) => {
      const ended = breaker.begin();
      try {
        const object = await door.get({ resource: TOOL_CALL, namespace, name }, { timeoutMs });
        ended('ok');
        return { came: 'read', object };
      } catch (error) {
        if (!(error instanceof ApiError)) throw error;
        ended(isBurden(error) ? 'bad' : 'ok');
        return error.code === 'notFound' ? { came: 'absent' } : { came: 'failed', problem: error.message };
      }
    },
  };
}

/** Whether a failure says that the API server has too much to do, or is not there. */
function isBurden({ code }: ApiError): boolean {
  return code === 'tooManyRequests' || code === 'server' || code === 'timeout' || code === 'network';
}
