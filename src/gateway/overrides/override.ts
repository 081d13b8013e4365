/** What a Tool says of one function of its server, compiled once for each change. Pure. */
import type { ToolSpec } from '../../api/tool.ts';
import type { HintOverride } from '../../domain/policy/hints.ts';
import type { JsonObject } from '../../mcp/wire/jsonrpc.ts';
import { compileOutputCheck, type OutputCheck } from './outputCheck.ts';

export type WrittenOverride = NonNullable<ToolSpec['functions']>[string];

export interface Usage {
  readonly service: string;
  readonly unit: string;
  readonly units: number;
  /** 0 where nothing is said. */
  readonly costUsd: number;
}

export interface CompiledOverride {
  readonly annotations: HintOverride;
  /** What is wrong with it: then the function is held back. */
  readonly problem?: string;
  readonly outputSchema?: JsonObject;
  readonly check?: OutputCheck;
  readonly usage?: Usage;
  /** JSON pointer to the argument that people read. */
  readonly aiLabel?: string;
}

export function compileOverride(written: WrittenOverride): CompiledOverride {
  const { annotations, outputSchema, usage, aiLabel } = written;
  const compiled = outputSchema === undefined ? undefined : compileOutputCheck(outputSchema);
  return {
    annotations: annotations ?? {},
    ...(compiled?.ok === false ? { problem: `outputSchema: ${compiled.problem}` } : {}),
    ...(compiled?.ok ? { outputSchema, check: compiled.check } : {}),
    ...(usage === undefined
      ? {}
      : {
          usage: {
            service: usage.service,
            unit: usage.unit,
            units: usage.units,
            costUsd: Number(usage.costUsd ?? 0),
          },
        }),
    ...(aiLabel === undefined ? {} : { aiLabel }),
  };
}
