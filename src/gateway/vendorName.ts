/** The name under which a model sees a function, in the characters that every vendor takes. Pure. */
import { createHash } from 'node:crypto';
import { MODEL_NAME_LIMIT, modelName } from '../domain/naming.ts';

const VENDOR_SAFE = /^[A-Za-z0-9_-]+$/;
const DIGEST_CHARS = 8;

/**
 * `modelName`, but where the server's name holds a dot or a slash, which MCP allows and vendors refuse (and with it the
 * agent's whole request): these as `_`, and 8 hex digits of the sha256 of the real name, so that no two collide.
 */
export function vendorName(toolId: string, functionName: string): string {
  const name = modelName(toolId, functionName);
  if (VENDOR_SAFE.test(name)) return name;
  const digest = createHash('sha256').update(`${toolId}__${functionName}`).digest('hex').slice(0, DIGEST_CHARS);
  const safe = name.replaceAll(/[^A-Za-z0-9_-]/g, '_');
  return `${safe.slice(0, MODEL_NAME_LIMIT - DIGEST_CHARS - 1)}_${digest}`;
}
