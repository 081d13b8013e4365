// biome-ignore-all lint/suspicious/noTemplateCurlyInString: ${...} is what users write
import { describe, expect, test } from 'vitest';
import type { KubeObject } from '../../engine/contract.ts';
import { aConnection, aTool } from '../testing/objects.ts';
import {
  connectionVariable,
  credentialsOf,
  describeTroubles,
  hostsOf,
  secretTroubles,
  unreachable,
} from './credentials.ts';
import { parseTool } from './tool.ts';

function read(spec: Record<string, unknown>, connections: readonly KubeObject[] = []) {
  const parsed = parseTool(JSON.parse(JSON.stringify(aTool(spec, { name: 'tracker' }))));
  if (!parsed.ok) throw new Error(parsed.problem);
  return { tool: parsed.value, credentials: credentialsOf(parsed.value, connections) };
}
const of = (spec: Record<string, unknown>, ...connections: KubeObject[]) => read(spec, connections).credentials;
const at = (name: string, creationTimestamp: string) => ({ name, creationTimestamp });
const OWN = { secrets: ['TOKEN'], inject: [{ secret: 'TOKEN', host: 'api.example.com' }] };
const EARLY = '2026-11-30T10:00:00Z';
const LATE = '2026-11-30T11:00:00Z';

describe('[C02] what a tool is given', () => {
  test('nothing, where nothing is said', () => {
    expect(of({})).toEqual({ secrets: [], bindings: [], connections: [], refused: new Map() });
  });

  test('keys of the Secret named as the Tool, or of the one that it names', () => {
    expect(of({ secrets: ['TOKEN'] }).secrets).toEqual([
      { name: 'TOKEN', secret: 'tracker', key: 'TOKEN', file: 'own/TOKEN' },
    ]);
    expect(of({ secrets: ['TOKEN'], secretRef: { name: 'other' } }).secrets).toMatchObject([{ secret: 'other' }]);
  });

  test.for<[string, object, object]>([
    ['Bearer in Authorization', {}, { in: 'header', name: 'Authorization', format: 'Bearer ${value}', port: 443 }],
    ['in whatever case', { header: 'AUTHORIZATION' }, { name: 'AUTHORIZATION', format: 'Bearer ${value}' }],
    ['the bare value in another header', { header: 'X-Key' }, { name: 'X-Key', format: '${value}' }],
    [
      'the bare value in the query',
      { in: 'query', parameter: 'key' },
      { in: 'query', name: 'key', format: '${value}' },
    ],
    [
      'as it is said',
      { format: 'token ${value}', port: 8443, websocket: true },
      { format: 'token ${value}', port: 8443, websocket: true },
    ],
  ])('a binding: %s', ([, written, wanted]) => {
    const { bindings } = of({ secrets: ['TOKEN'], inject: [{ secret: 'TOKEN', host: 'api.example.com', ...written }] });
    expect(bindings).toEqual([expect.objectContaining({ secret: 'TOKEN', host: 'api.example.com', ...wanted })]);
  });

  test('a Connection that names it: a name that no user may give, since it is our prefix', () => {
    const { secrets, bindings, connections } = of({}, aConnection());
    expect(secrets).toEqual([
      { name: 'OZ0_CONNECTION_TRACKER', secret: 'tracker-token', key: 'token', file: 'connections/tracker' },
    ]);
    expect(bindings).toMatchObject([{ secret: 'OZ0_CONNECTION_TRACKER', host: 'gitlab.example.com' }]);
    expect(connections).toEqual(['tracker']);
    expect(connectionVariable('a-b2')).toBe('OZ0_CONNECTION_A_B2');
  });

  test.for<[string, KubeObject]>([
    ['of another tool', aConnection({ tools: ['other'] })],
    ['on its way out', aConnection({}, { deletionTimestamp: 'now' })],
    ['that cannot be read [I9]', aConnection({ bind: [{ host: 'GitLab' }] })],
    ['of a kind that a later version knows', aConnection({ kind: 'steps' })],
  ])('but no Connection %s', ([, connection]) => {
    expect(of({}, connection).secrets).toEqual([]);
  });
});

describe('one place in the requests to a host holds one secret', () => {
  const rival = aConnection({ bind: [{ host: 'api.example.com' }] }, at('rival', EARLY));

  test("the Tool's own binding is first", () => {
    const { bindings, refused, connections } = of(OWN, rival);
    expect(bindings).toMatchObject([{ secret: 'TOKEN' }]);
    expect(connections).toEqual([]);
    expect(refused.get('rival')).toBe('header Authorization of api.example.com is bound by the Tool itself');
  });

  test('then the Connection that was there before, in whatever order they come', () => {
    const early = aConnection({ secret: { secretRef: { name: 'one' }, key: 'token' } }, at('z-early', EARLY));
    const late = aConnection({ secret: { secretRef: { name: 'two' }, key: 'token' } }, at('a-late', LATE));
    for (const order of [
      [early, late],
      [late, early],
    ]) {
      const { connections, refused } = of({}, ...order);
      expect(connections).toEqual(['z-early']);
      expect(refused.get('a-late')).toBe('header Authorization of gitlab.example.com is bound by Connection z-early');
    }
  });

  test('[I12] the late one is left out as a whole, and takes no place from a third', () => {
    const bind = [{ host: 'api.example.com' }, { host: 'third.example.com' }];
    const third = aConnection({ bind: [{ host: 'third.example.com' }] }, at('third', LATE));
    const { connections, bindings } = of(OWN, aConnection({ bind }, at('rival', EARLY)), third);
    expect(connections).toEqual(['third']);
    expect(bindings.map(({ host }) => host)).toEqual(['api.example.com', 'third.example.com']);
  });

  test.for([
    ['another port', { port: 8443 }],
    ['another header', { header: 'X-Key' }],
    ['the query', { in: 'query', parameter: 'key' }],
    ['another host', { host: 'www.example.com' }],
  ] as const)('%s is another place', ([, place]) => {
    expect(of(OWN, aConnection({ bind: [{ host: 'api.example.com', ...place }] })).connections).toEqual(['tracker']);
  });

  test('the same header in another spelling is not', () => {
    expect(of(OWN, aConnection({ bind: [{ host: 'api.example.com', header: 'authorization' }] })).connections).toEqual(
      [],
    );
  });
});

test("[C02] an admin's binding makes a declared secret a placeholder under its own name", () => {
  const same = aConnection({ secret: { secretRef: { name: 'tracker' }, key: 'TOKEN' } });
  const { secrets, bindings, connections } = of({ secrets: ['TOKEN'] }, same);
  expect(secrets.map(({ name }) => name)).toEqual(['TOKEN']);
  expect(bindings).toMatchObject([{ secret: 'TOKEN', host: 'gitlab.example.com' }]);
  expect(connections).toEqual(['tracker']);
});

describe('[C02] [S05] hosts', () => {
  test('those that are named, and of the URL, each as it is written; to bind a secret opens none', () => {
    const bound = aConnection({ bind: [{ host: 'b.example', port: 8443 }] });
    const { tool } = read({ ...OWN, hosts: ['a.example:8443', '*.example.org'] }, [bound]);
    expect(hostsOf(tool)).toEqual(['*.example.org', 'a.example:8443']);
    const remote = read({ image: undefined, url: 'https://mcp.example.com:8443/mcp' }, [bound]);
    expect(hostsOf(remote.tool)).toEqual(['mcp.example.com:8443']);
  });

  test.for<[string, Record<string, unknown>, string[]]>([
    ['named', { hosts: ['api.example.com'] }, []],
    ['named by a pattern', { hosts: ['*.example.com'] }, []],
    ['of another label', { hosts: ['*.api.example.com', '*.com.example'] }, ['api.example.com']],
    ['of another port', { hosts: ['api.example.com:8443'] }, ['api.example.com']],
    ['not named', {}, ['api.example.com']],
    ['of the URL', { image: undefined, url: 'https://api.example.com/mcp' }, []],
    ['of another URL', { image: undefined, url: 'https://mcp.example.com/mcp' }, ['api.example.com']],
  ])('a bound host that is %s', ([, spec, wanted]) => {
    const { tool, credentials } = read({ ...OWN, ...spec });
    expect(unreachable(tool, credentials.bindings)).toEqual(wanted);
  });
});

describe('[case 81] what pods say is wrong', () => {
  const credentials = of({ secrets: ['TOKEN', 'B'] }, aConnection());
  const say = (...problems: { name: string; problem: 'missing' | 'empty' | 'malformed' }[]) =>
    secretTroubles(credentials, [
      { state: 'none' },
      {
        state: 'ok',
        key: 'k',
        ageMs: 0,
        value: {
          podUid: 'p',
          phase: 'Down',
          process: { starts: 0 },
          sandbox: { holds: true, open: [], userNamespace: true, pidsLimit: 1 },
          secrets: { problems },
        },
      },
    ]);

  test('is told by Secret and key', () => {
    const troubles = say({ name: 'OZ0_CONNECTION_TRACKER', problem: 'empty' }, { name: 'B', problem: 'malformed' });
    expect(describeTroubles(troubles)).toBe(
      'Key B of Secret tracker is no single line of visible ASCII; key token of Secret tracker-token is empty.',
    );
  });

  test('[I4] and names that the Tool does not have are not repeated', () => {
    expect(say({ name: 'hunter2', problem: 'missing' })).toEqual([]);
  });
});
