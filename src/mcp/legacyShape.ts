/** What must be left out of tools and results for clients of the older era, whose schemas refuse it. Pure. */
import { isObject, type JsonObject } from './wire/jsonrpc.ts';

/** Up to 2025-11-25 an output schema describes an object; any other is left out. */
export function legacyListing(result: JsonObject): JsonObject {
  const { tools } = result;
  if (!Array.isArray(tools)) return result;
  return { ...result, tools: tools.map((tool) => (isObject(tool) ? legacyTool(tool) : tool)) };
}

function legacyTool(tool: JsonObject): JsonObject {
  const schema = tool['outputSchema'];
  if (schema === undefined || (isObject(schema) && schema['type'] === 'object')) return tool;
  const { outputSchema: _, ...rest } = tool;
  return rest;
}

/** Structured content is an object there; another value travels as the text that is beside it. */
export function legacyResult(result: JsonObject): JsonObject {
  const structured = result['structuredContent'];
  if (structured === undefined || isObject(structured)) return result;
  const { structuredContent: _, ...rest } = result;
  return rest;
}
