/**
 * The tenant's mark on what an agent writes for people: at the start of the argument that the Tool names, and in `_meta` for
 * a local tool, which may know better where. After policy and approval, which saw the arguments as they were. Pure.
 */
import { applyAiLabel } from '../../domain/policy/aiLabel.ts';
import { isObject, type JsonObject } from '../../mcp/wire/jsonrpc.ts';
import { META_AI_LABEL } from '../../mcp/wire/meta.ts';
import type { Terms } from '../decide.ts';

export type LabelledArguments =
  | { readonly ok: true; readonly arguments: JsonObject; readonly meta: JsonObject }
  /** What is to be marked is there, and is no text. */
  | { readonly ok: false; readonly problem: string };

const NONE: JsonObject = {};

export function labelArguments(terms: Terms, args: JsonObject): LabelledArguments {
  const { tool, described, aiLabel, aiLabelBroken } = terms;
  const pointer = described.override?.aiLabel;
  if (aiLabelBroken && pointer !== undefined && isWritten(args, pointer)) {
    return { ok: false, problem: 'the label of the namespace cannot be read' };
  }
  if (aiLabel === undefined) return { ok: true, arguments: args, meta: NONE };
  const meta = tool.remote ? NONE : { [META_AI_LABEL]: aiLabel };
  // Where nothing is written, people read nothing.
  if (pointer === undefined || !isWritten(args, pointer)) return { ok: true, arguments: args, meta };
  const labelled = applyAiLabel(args, pointer, aiLabel);
  return labelled.ok ? { ok: true, arguments: labelled.args, meta } : labelled;
}

function isWritten(args: JsonObject, pointer: string): boolean {
  let value: unknown = args;
  for (const part of pointer.slice(1).split('/')) {
    const key = part.replaceAll('~1', '/').replaceAll('~0', '~');
    if (Array.isArray(value)) value = value[Number(key)];
    // A text where an object should be is for people too, wherever the server then puts it.
    else if (isObject(value)) value = Object.hasOwn(value, key) ? value[key] : undefined;
    else return value !== undefined && value !== null;
  }
  return value !== undefined && value !== null;
}
