import { describe, expect, test } from 'vitest';
import type { KubeObject } from '../../engine/contract.ts';
import { aConnection, aRemoteTool, aTool, IMAGE } from '../testing/objects.ts';
import { runsOf } from './runs.ts';
import { acceptTool } from './source.ts';
import { parseTool } from './tool.ts';

function runs(tool: KubeObject, connections: readonly KubeObject[] = []): string {
  const parsed = parseTool(tool);
  if (!parsed.ok) throw new Error(parsed.problem);
  const accepted = acceptTool(parsed.value, [], connections, { modelGateway: true });
  if (!accepted.ok) throw new Error(accepted.fact.message);
  return runsOf(parsed.value, accepted.source, accepted.credentials);
}

const BASE = {
  env: { A: '1', B: '2' },
  secrets: ['TOKEN', 'OTHER'],
  inject: [{ secret: 'TOKEN', host: 'a.example' }],
  hosts: ['a.example', 'b.example'],
};
const base = runs(aTool(BASE));

describe('[P02] what makes another version', () => {
  test.for<[string, KubeObject]>([
    ['image', aTool({ ...BASE, image: { ...IMAGE, reference: 'ghcr.example/acme/tool:3' } })],
    ['command', aTool({ ...BASE, image: { ...IMAGE, command: ['/usr/bin/tool', '--http'] } })],
    ['arguments', aTool({ ...BASE, image: { ...IMAGE, args: ['--all'] } })],
    ['directory', aTool({ ...BASE, image: { ...IMAGE, workingDir: '/srv' } })],
    ['env', aTool({ ...BASE, env: { A: '1', B: '3' } })],
    ['secrets', aTool({ ...BASE, secrets: ['TOKEN', 'MORE'] })],
    ['where secrets come from', aTool({ ...BASE, secretRef: { name: 'elsewhere' } })],
    ['bindings', aTool({ ...BASE, inject: [{ secret: 'TOKEN', host: 'b.example' }] })],
    ['hosts', aTool({ ...BASE, hosts: ['a.example'] })],
    ['asking a model', aTool({ ...BASE, usesModel: true })],
  ])('%s', ([, tool]) => {
    expect(runs(tool)).not.toBe(base);
  });

  test('of a server elsewhere: its address, its headers, its Connections', () => {
    const remote = runs(aRemoteTool());
    expect(runs(aRemoteTool({ url: 'https://mcp.example.com/v2' }))).not.toBe(remote);
    expect(runs(aRemoteTool({ headers: { 'X-Team': 'a' } }))).not.toBe(remote);
    expect(runs(aRemoteTool(), [aConnection()])).not.toBe(remote);
    expect(runs(aRemoteTool({ timeout: '2m', replicas: 3 }))).toBe(remote);
  });
});

describe('[case 53] what does not', () => {
  test.for<[string, KubeObject]>([
    ['resources', aTool({ ...BASE, resources: { limits: { memory: '1Gi' } } })],
    ['where it runs', aTool({ ...BASE, affinity: 'any', replicas: 3, nodeSelector: { zone: 'a' } })],
    ['time and slots', aTool({ ...BASE, timeout: '2m', concurrency: 3 })],
    ['order of env', aTool({ ...BASE, env: { B: '2', A: '1' } })],
    ['order of secrets', aTool({ ...BASE, secrets: ['OTHER', 'TOKEN'] })],
    ['order of hosts', aTool({ ...BASE, hosts: ['b.example', 'a.example'] })],
  ])('%s', ([, tool]) => {
    expect(runs(tool)).toBe(base);
  });

  test('a later version of the operator: it is in status, and another one would try every tool anew', () => {
    expect(base).toBe('0a01ce6f218fde45c54b33e2a338472c8358a8dda46e26f518f8fe49d240ba01');
    expect(runs(aRemoteTool())).toBe('7475a72424b40157181df8d43ef4b3e3c90f38d941e0683ac86ba34f7954f4a6');
  });
});
