/**
 * Whether a function's definition is one that clients accept. An SDK's client refuses a whole listing for one definition
 * that its schema does not take, so what a gateway shows is judged by that very schema, each function by itself.
 */
import { ToolSchema } from '@modelcontextprotocol/core';
import type { JsonObject } from './wire/jsonrpc.ts';

/** Where the definition (with its name) is wrong, in words for its author; undefined when clients take it. */
export function toolProblem(definition: JsonObject): string | undefined {
  const parsed = ToolSchema.safeParse(definition);
  if (parsed.success) return undefined;
  const [issue] = parsed.error.issues;
  return issue === undefined ? 'it is no tool' : `${issue.path.join('.') || 'it'}: ${issue.message}`;
}
