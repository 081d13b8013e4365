import { describe, expect, test } from 'vitest';
import type { KubeObject, Resource } from '../engine/contract.ts';
import type { ObjectView, WatchRequest } from '../engine/door.ts';
import { CONFIG_MAP, POD } from '../reconcilers/resources.ts';
import { limitConfigMaps } from './limitWatch.ts';

function watchOf(resource: Resource) {
  const requests: WatchRequest[] = [];
  const object = (name: string): KubeObject => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name, namespace: 'a' },
  });
  const told = { synced: 0 };
  const watch = limitConfigMaps((request): ObjectView => {
    const index = requests.push(request) - 1;
    return {
      get: (name) => (name === `of-${index}` ? object(name) : undefined),
      list: () => [object(`of-${index}`)],
      synced: () => true,
      version: () => String(index),
    };
  }, 'oz0-system');
  const view = watch({
    resource,
    onChange: () => {},
    onSynced: () => {
      told.synced += 1;
    },
    signal: new AbortController().signal,
  });
  return { requests, view, told };
}

describe('what the controller watches', () => {
  test('[case 121] ConfigMaps: no more than its role allows', () => {
    const { requests } = watchOf(CONFIG_MAP);
    expect(requests.map(({ namespace, fieldSelector }) => [namespace, fieldSelector])).toEqual([
      [undefined, 'metadata.name=oz0'],
      ['oz0-system', 'metadata.name=oz0-trust'],
      ['oz0-system', 'metadata.name=oz0-upstream-ca'],
    ]);
  });

  test('the watches look like one', () => {
    const { view } = watchOf(CONFIG_MAP);
    expect(view.list().map(({ metadata }) => metadata.name)).toEqual(['of-0', 'of-1', 'of-2']);
    expect(view.get('of-1', 'a')?.metadata.name).toBe('of-1');
    expect(view.version()).toBe('0');
  });

  test('[I1] it is synced once all are', () => {
    const { requests, told } = watchOf(CONFIG_MAP);
    requests[0]?.onSynced();
    expect(told.synced).toBe(0);
    requests[1]?.onSynced();
    expect(told.synced).toBe(0);
    requests[2]?.onSynced();
    expect(told.synced).toBe(1);
  });

  test('everything else as it was asked', () => {
    const { requests } = watchOf(POD);
    expect(requests).toHaveLength(1);
    expect(requests[0]).not.toHaveProperty('fieldSelector');
  });
});
