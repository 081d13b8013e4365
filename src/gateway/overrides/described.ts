/**
 * A function as this gateway takes it: what its server lists, with what its Tool says beside. Worked out once for each
 * listing and each change of the overrides. Pure.
 */
import type { FunctionKind } from '../../domain/config/sidecar.ts';
import { effectiveHints, type Hints } from '../../domain/policy/hints.ts';
import { functionKind } from '../../domain/snapshot/functionKind.ts';
import { isObject, type JsonObject } from '../../mcp/wire/jsonrpc.ts';
import { META_OUTPUT_SCHEMA } from '../../mcp/wire/meta.ts';
import type { CompiledTool, Overrides } from '../catalog/tool.ts';
import type { ListedFunction } from '../listing/listing.ts';
import type { CompiledOverride } from './override.ts';

export interface DescribedFunction {
  readonly kind: FunctionKind;
  readonly openWorld: boolean;
  readonly idempotent: boolean;
  readonly honoursKey: boolean;
  /** As it is shown, under whatever name. The same object as long as nothing changes. */
  readonly definition: JsonObject;
  readonly override: CompiledOverride | undefined;
}

const kept = new WeakMap<ListedFunction, { readonly from: Overrides; readonly described: DescribedFunction }>();

export function describeFunction(tool: CompiledTool, listed: ListedFunction): DescribedFunction {
  const known = kept.get(listed);
  if (known?.from === tool.overrides) return known.described;
  const described = describe(tool, listed);
  kept.set(listed, { from: tool.overrides, described });
  return described;
}

function describe(tool: CompiledTool, listed: ListedFunction): DescribedFunction {
  const override = tool.overrides.byName.get(listed.name);
  // Whoever asks has compared it with its snapshot, so a remote server's annotations count.
  const hints = effectiveHints({
    annotations: listed.hints,
    override: override?.annotations,
    annotationsCount: true,
  });
  return {
    kind: hints.kind,
    openWorld: tool.remote || hints.openWorld,
    idempotent: hints.idempotent,
    honoursKey: listed.honoursKey || tool.honoursKey.has(listed.name),
    definition: shown(listed.definition, hints, override),
    override,
  };
}

/**
 * Clients, too, decide by hints, so they are shown as they are taken here. The Tool's output schema goes into `_meta`:
 * clients refuse a result without structured content where `outputSchema` is said, and a server that answers in text only
 * is not to be lost for that.
 */
function shown(definition: JsonObject, hints: Hints, override: CompiledOverride | undefined): JsonObject {
  const { _meta, annotations, ...rest } = definition;
  const said: JsonObject = { ...(isObject(annotations) ? annotations : {}), ...override?.annotations };
  const alike = functionKind(said) === hints.kind && (said['readOnlyHint'] === true) === (hints.kind === 'ReadOnly');
  const { readOnlyHint: _1, destructiveHint: _2, ...others } = said;
  const told = {
    ...(alike ? said : { ...others, ...HINTS_OF[hints.kind] }),
    ...('openWorldHint' in said ? { openWorldHint: hints.openWorld } : {}),
    ...('idempotentHint' in said ? { idempotentHint: hints.idempotent } : {}),
  };
  const schema = override?.outputSchema;
  const meta = { ...(isObject(_meta) ? _meta : {}), ...(schema === undefined ? {} : { [META_OUTPUT_SCHEMA]: schema }) };
  return {
    ...rest,
    ...(Object.keys(told).length === 0 ? {} : { annotations: told }),
    ...(Object.keys(meta).length === 0 ? {} : { _meta: meta }),
  };
}

const HINTS_OF: Readonly<Record<FunctionKind, JsonObject>> = {
  ReadOnly: { readOnlyHint: true },
  Additive: { readOnlyHint: false, destructiveHint: false },
  Destructive: { readOnlyHint: false, destructiveHint: true },
  Undeclared: {},
};
