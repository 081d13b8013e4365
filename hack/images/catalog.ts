/** The images there are, and what goes into each beside its folder `hack/images/<name>`. */
import { join } from 'node:path';
import { program } from '../cluster/programs.ts';
import type { Engine } from './engine.ts';
import {
  file,
  nodeRuntime,
  npmPackages,
  packageVersion,
  pythonPackages,
  pythonRuntime,
  type Staging,
} from './staging.ts';

export type Image = {
  name: string;
  reference: string;
  /** The image it is made from: one of ours, or where Docker runs a public one. */
  base?: string | { docker: string };
  /** A script that makes the files which are staged; run each time, so that no image is older than its source. */
  script?: string;
  staging?: (engine: Engine) => Staging[];
};

const dist = (name: string): string => join(import.meta.dirname, '..', '..', 'dist', name);

const images: readonly Image[] = [
  {
    name: 'pause',
    reference: 'oz0.local/pause:dev',
    staging: () => [file(program('pause'), 'pause')],
  },
  {
    name: 'coredns',
    reference: 'oz0.local/coredns:dev',
    staging: () => [file(program('coredns'), 'coredns')],
  },
  {
    name: 'node-base',
    reference: 'oz0.local/node-base:dev',
    base: { docker: 'node:24-bookworm-slim' },
    staging: (engine) => [nodeRuntime(engine)],
  },
  { name: 'probe', reference: 'oz0.local/probe:dev', base: 'node-base' },
  { name: 'agent', reference: 'oz0.local/agent:dev', base: 'node-base', staging: () => [npmPackages('agent')] },
  npmTool('tool-everything', '@modelcontextprotocol/server-everything'),
  npmTool('tool-filesystem', '@modelcontextprotocol/server-filesystem'),
  {
    name: 'python-base',
    reference: 'oz0.local/python-base:dev',
    base: { docker: 'python:3.11-slim-bookworm' },
    staging: (engine) => [pythonRuntime(engine)],
  },
  {
    name: 'tool-time',
    reference: `oz0.local/tool-time:${packageVersion('tool-time', 'mcp-server-time')}`,
    base: 'python-base',
    staging: () => [pythonPackages('tool-time')],
  },
  {
    name: 'operator',
    reference: 'oz0.local/operator:dev',
    base: 'node-base',
    script: join(import.meta.dirname, '..', 'build.ts'),
    staging: () => [
      file(dist('operator.mjs'), 'app/operator.mjs'),
      file(dist('sidecar.mjs'), 'app/sidecar.mjs'),
      file(dist('launcher'), 'app/launcher'),
    ],
  },
];

/** What `build` makes unless told; the embedded cluster makes its own two by itself. */
export const imageNames: readonly string[] = images
  .map(({ name }) => name)
  .filter((name) => name !== 'pause' && name !== 'coredns');

export function imageOf(name: string): Image | undefined {
  return images.find((image) => image.name === name);
}

function npmTool(name: string, dependency: string): Image {
  return {
    name,
    reference: `oz0.local/${name}:${packageVersion(name, dependency)}`,
    base: 'node-base',
    staging: () => [npmPackages(name)],
  };
}
