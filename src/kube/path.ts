import { ApiError } from '../engine/api-error.ts';
import type { Resource } from '../engine/contract.ts';
import type { ListQuery } from '../engine/door.ts';

/** Path of one object, or of one of its subresources. Throws `invalid` for a name that would change the path. */
export function objectPath(
  ref: { readonly resource: Resource; readonly namespace?: string | undefined; readonly name: string },
  subresource?: string,
): string {
  const path = `${collectionPath(ref.resource, requiredNamespace(ref))}/${segment(ref.name)}`;
  return subresource === undefined ? path : `${path}/${subresource}`;
}

/** Path of the objects of a kind in one namespace, or (namespace undefined) in all. */
export function collectionPath(resource: Resource, namespace: string | undefined): string {
  const group = resource.apiVersion.includes('/') ? `/apis/${resource.apiVersion}` : `/api/${resource.apiVersion}`;
  const scope = resource.namespaced && namespace !== undefined ? `/namespaces/${segment(namespace)}` : '';
  return `${group}${scope}/${resource.plural}`;
}

/** `query` with selectors as the API server takes them. */
export function selectorParameters(query: ListQuery): Record<string, string> {
  return {
    ...(query.labelSelector === undefined ? {} : { labelSelector: query.labelSelector }),
    ...(query.fieldSelector === undefined ? {} : { fieldSelector: query.fieldSelector }),
  };
}

function requiredNamespace(ref: { readonly resource: Resource; readonly namespace?: string | undefined }) {
  if (ref.resource.namespaced && ref.namespace === undefined) {
    throw new ApiError('invalid', `A ${ref.resource.kind} is in a namespace, and none was given.`);
  }
  return ref.namespace;
}

function segment(name: string): string {
  if (name === '' || name === '.' || name === '..' || /[/%\\]/.test(name)) {
    throw new ApiError('invalid', `Not a name of an object: ${JSON.stringify(name)}.`);
  }
  return encodeURIComponent(name);
}
