/** A kind as the API server gets it. */
import { GROUP, type Kind, VERSION } from './kind.ts';
import { type StructuralSchema, structuralSchema } from './schema.ts';

/** The CustomResourceDefinition of a kind, as a plain object with its fields in the order in which people read them. */
export function crd(kind: Kind): Record<string, unknown> {
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${kind.plural}.${GROUP}` },
    spec: {
      group: GROUP,
      scope: kind.cluster ? 'Cluster' : 'Namespaced',
      names: {
        kind: kind.kind,
        listKind: `${kind.kind}List`,
        plural: kind.plural,
        singular: kind.singular,
        shortNames: kind.shortNames,
        categories: ['oz0'],
      },
      versions: [
        {
          name: VERSION,
          served: true,
          storage: true,
          subresources: { status: {} },
          additionalPrinterColumns: kind.columns.map(({ name, type, path, description, wide }) => ({
            name,
            type,
            jsonPath: path,
            description,
            ...(wide ? { priority: 1 } : {}),
          })),
          ...(kind.selectable === undefined
            ? {}
            : { selectableFields: kind.selectable.map((jsonPath) => ({ jsonPath })) }),
          schema: { openAPIV3Schema: rootSchema(kind) },
        },
      ],
    },
  };
}

/** The API server itself asks for apiVersion, kind and metadata. */
function rootSchema(kind: Kind): StructuralSchema {
  return { ...structuralSchema(kind.schema), required: ['spec'] };
}
