/** A kind: its schema as a whole object, its names, and what `kubectl get` shows of it. */
import { z } from 'zod';
import { object, optional, type Rule, register } from './schema.ts';

export const GROUP = 'oz0.ai';
export const VERSION = 'v1alpha1';
export const API_VERSION = `${GROUP}/${VERSION}` as const;

/** What is read of an object's metadata; judging it is the API server's, so it is loose here. */
const metadata = register(
  z.looseObject({
    name: z.string(),
    namespace: z.string().exactOptional(),
    uid: z.string().exactOptional(),
    resourceVersion: z.string().exactOptional(),
    generation: z.int().exactOptional(),
    creationTimestamp: z.string().exactOptional(),
    deletionTimestamp: z.string().exactOptional(),
    labels: z.record(z.string(), z.string()).exactOptional(),
    annotations: z.record(z.string(), z.string()).exactOptional(),
    ownerReferences: z
      .array(
        z.looseObject({
          apiVersion: z.string(),
          kind: z.string(),
          name: z.string(),
          uid: z.string(),
          controller: z.boolean().exactOptional(),
        }),
      )
      .exactOptional(),
  }),
  { type: 'object' },
);

export interface Column {
  readonly name: string;
  readonly type: 'string' | 'integer' | 'date';
  readonly path: string;
  readonly description: string;
  /** Shown with `-o wide` only. */
  readonly wide?: true;
}

/** A kind as the generators see it. */
export interface Kind {
  readonly kind: string;
  readonly plural: string;
  readonly singular: string;
  readonly shortNames: readonly string[];
  /** Of the whole cluster rather than of a namespace. */
  readonly cluster?: true;
  readonly description: string;
  readonly columns: readonly Column[];
  /** Paths that a field selector of a list or watch may name. */
  readonly selectable?: readonly string[];
  /** Judges and reads whole objects; made by the helpers of `schema.ts`. */
  readonly schema: z.ZodType;
}

/** What goes in is a kind's parts; out comes the same with the schema of a whole object (apiVersion, kind, metadata, spec, status). */
export function defineKind<const K extends string, S extends z.ZodType, T extends z.ZodType>(
  kind: K,
  options: Omit<Kind, 'kind' | 'schema'> & {
    readonly spec: S;
    readonly status: T;
    /** Over the whole object, for what its name and its spec say together. */
    readonly rules?: readonly Rule<{ readonly metadata: { readonly name: string }; readonly spec: z.output<S> }>[];
  },
) {
  const { spec, status, rules, ...rest } = options;
  const schema = object(
    {
      apiVersion: register(z.literal(API_VERSION), { type: 'string', description: `Always \`${API_VERSION}\`.` }),
      kind: register(z.literal(kind), { type: 'string', description: `Always \`${kind}\`.` }),
      metadata,
      spec,
      status: optional(status),
    },
    { description: options.description, ...(rules ? { rules: rules as never } : {}) },
  );
  return { ...rest, kind, schema };
}
