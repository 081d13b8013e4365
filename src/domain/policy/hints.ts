/** What a function does to the world: what its server says, and what its Tool adds or tightens. Pure. */
import type { FunctionKind } from '../config/sidecar.ts';
import { functionKind } from '../snapshot/functionKind.ts';

export interface Hints {
  readonly kind: FunctionKind;
  readonly openWorld: boolean;
  readonly idempotent: boolean;
}

/** Of a Tool's `functions.<name>.annotations`. */
export interface HintOverride {
  readonly readOnlyHint?: boolean;
  readonly destructiveHint?: boolean;
  readonly idempotentHint?: boolean;
  readonly openWorldHint?: boolean;
}

/** Which value of a hint promises less. */
const STRICT = { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: true } as const;

export interface HintQuestion {
  /** As the server lists them. */
  readonly annotations: unknown;
  readonly override?: HintOverride | undefined;
  /** A remote server's count only while its listing is its snapshot; until then nothing is known of the function. */
  readonly annotationsCount: boolean;
  /** The override was reviewed by an admin, so it may also loosen. */
  readonly reviewed?: boolean;
}

export function effectiveHints({
  annotations,
  override = {},
  annotationsCount,
  reviewed = false,
}: HintQuestion): Hints {
  if (!annotationsCount) return { kind: 'Undeclared', openWorld: true, idempotent: false };
  const said = isRecord(annotations) ? { ...annotations } : {};
  for (const [hint, strict] of Object.entries(STRICT)) {
    const wanted = override[hint as keyof HintOverride];
    if (wanted === undefined) continue;
    // A hint that is missing may be set; one that is given, also in a form that nobody can read, only tightened.
    if (said[hint] === undefined || wanted === strict || reviewed) said[hint] = wanted;
  }
  // A policy reads it first, and the server's word would stand against the override's.
  if (override.destructiveHint === true) delete said['readOnlyHint'];
  return {
    kind: functionKind(said),
    openWorld: said['openWorldHint'] !== false,
    idempotent: said['idempotentHint'] === true,
  };
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
