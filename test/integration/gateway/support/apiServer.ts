/** An API server of a few lists that can be watched, and reviews of tokens; over loopback, plain. */
import { randomUUID } from 'node:crypto';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Loose } from './world.ts';

const TOOL_CALLS = '/apis/oz0.ai/v1alpha1/toolcalls';
const TOOL_CALL = /^\/apis\/oz0\.ai\/v1alpha1\/namespaces\/([^/]+)\/toolcalls(?:\/([^/]+?)(?:\/status)?)?$/;

interface Stored {
  readonly metadata: { readonly namespace?: string; readonly name: string };
}

export interface ApiServer {
  readonly url: string;
  /** `path` is the collection's, such as `/api/v1/pods`. */
  readonly put: (path: string, object: Stored) => void;
  readonly remove: (path: string, namespace: string, name: string) => void;
  /** By token: what the review's status is for the audience `oz0-gateway`. */
  readonly tokens: Map<string, object>;
  /** Query of every list and watch. */
  readonly asked: string[];
  /** Lists are not answered any more; watches stay open, and tell nothing. */
  silent: boolean;
  /** Watches stay open, and are told nothing any more. */
  deaf: boolean;
  readonly close: () => Promise<void>;
}

export async function startApiServer(): Promise<ApiServer> {
  const collections = new Map<string, Map<string, Stored>>();
  const watches = new Map<string, Set<ServerResponse>>();
  const tokens = new Map<string, object>();
  const asked: string[] = [];
  let version = 1;

  const collection = (path: string): Map<string, Stored> => {
    const found = collections.get(path) ?? new Map<string, Stored>();
    collections.set(path, found);
    return found;
  };
  const tell = (path: string, type: string, object: Stored): void => {
    version += 1;
    const told = {
      ...object,
      metadata: { uid: object.metadata.name, ...object.metadata, resourceVersion: String(version) },
    };
    if (type !== 'DELETED') collection(path).set(`${object.metadata.namespace}/${object.metadata.name}`, told);
    for (const res of api.deaf ? [] : (watches.get(path) ?? []))
      res.write(`${JSON.stringify({ type, object: told })}\n`);
  };

  const serveToolCall = (
    method: string,
    [, namespace, name]: RegExpExecArray,
    body: Loose,
    res: ServerResponse,
  ): void => {
    const say = (status: number, value: object): void => {
      res.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));
    };
    const fail = (code: number, reason: string): void => say(code, { kind: 'Status', code, reason, message: reason });
    const key = `${namespace}/${name ?? body?.metadata?.name}`;
    const stored = collection(TOOL_CALLS).get(key) as Loose;
    if (method === 'POST') {
      if (stored === undefined) {
        tell(TOOL_CALLS, 'ADDED', { ...body, metadata: { ...body.metadata, uid: randomUUID() } });
        say(201, collection(TOOL_CALLS).get(key) as object);
      } else fail(409, 'AlreadyExists');
    } else if (stored === undefined) fail(404, 'NotFound');
    else if (method === 'PUT' && stored.metadata.resourceVersion !== body.metadata.resourceVersion)
      fail(409, 'Conflict');
    else {
      if (method === 'PUT') tell(TOOL_CALLS, 'MODIFIED', { ...stored, status: body.status });
      say(200, collection(TOOL_CALLS).get(key) as object);
    }
  };

  const server = createServer((req, res) => {
    const url = new URL(req.url ?? '', 'http://x');
    const parts: Buffer[] = [];
    req.on('data', (part: Buffer) => parts.push(part));
    req.on('end', () => {
      if (url.pathname.endsWith('/tokenreviews')) {
        const body = JSON.parse(Buffer.concat(parts).toString());
        const status = body.spec.audiences.includes('oz0-gateway') ? tokens.get(body.spec.token) : undefined;
        res.writeHead(201, { 'content-type': 'application/json' });
        res.end(JSON.stringify({ ...body, status: status ?? { authenticated: false, error: 'invalid' } }));
        return;
      }
      const call = TOOL_CALL.exec(url.pathname);
      if (call !== null && !api.silent) {
        serveToolCall(
          req.method ?? '',
          call,
          parts.length === 0 ? undefined : JSON.parse(Buffer.concat(parts).toString()),
          res,
        );
        return;
      }
      asked.push(`${url.pathname}${url.search}`);
      if (url.searchParams.get('watch') === 'true') {
        res.writeHead(200, { 'content-type': 'application/json' }).flushHeaders();
        const open = watches.get(url.pathname) ?? new Set();
        watches.set(url.pathname, open.add(res));
        res.on('close', () => open.delete(res));
        return;
      }
      if (api.silent) return;
      res.writeHead(200, { 'content-type': 'application/json' });
      const items = [...collection(url.pathname).values()];
      res.end(
        JSON.stringify({ apiVersion: 'v1', kind: 'List', metadata: { resourceVersion: String(version) }, items }),
      );
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()));
  const api: ApiServer = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    put: (path, object) => {
      const known = collection(path).has(`${object.metadata.namespace}/${object.metadata.name}`);
      tell(path, known ? 'MODIFIED' : 'ADDED', object);
    },
    remove: (path, namespace, name) => {
      const object = collection(path).get(`${namespace}/${name}`);
      collection(path).delete(`${namespace}/${name}`);
      if (object !== undefined) tell(path, 'DELETED', object);
    },
    tokens,
    asked,
    silent: false,
    deaf: false,
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return api;
}
