/**
 * The named route `model`: tunnels that end here. Requests in them are read, decided on (`domain/egress/decideModelRequest.ts`), written
 * anew and sent to the one gateway that the cluster's admin names, with the operator's key; answers stream back, and the key is
 * taken out of them. The gateway's address is the admin's word, so it is not judged as hosts of tools are. [S09]
 */
import { readFile } from 'node:fs/promises';
import { createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { Duplex } from 'node:stream';
import { getCACertificates } from 'node:tls';
import { filled } from '../domain/credential/binding.ts';
import { readBoundValue } from '../domain/credential/readSecretValue.ts';
import type { Field } from '../domain/credential/requestHead.ts';
import { NOT_FOR_TOOLS } from '../domain/credential/responseHead.ts';
import { compileNeedles, createRedactor, masked, type Needle } from '../domain/credential/search.ts';
import type { Secret } from '../domain/credential/secret.ts';
import type { ToolIdentity } from '../domain/egress/decideConnect.ts';
import { decideModelRequest } from '../domain/egress/decideModelRequest.ts';
import { MODEL_PLACEHOLDER } from '../domain/naming.ts';
import type { Log } from '../runtime/log.ts';
import { answerModelRefusal, type ModelProblem } from './modelRefusal.ts';

/** Where the cluster's admin has the model gateway. */
export interface ModelGateway {
  /** http or https; what a tool asks for is added to its path. */
  readonly url: URL;
  /** Of the operator's own pod; read for each request, so that a new key needs no new pod. Unset: the gateway wants none. */
  readonly keyFile?: string;
  readonly header: string;
  /** Holds `${value}` once. */
  readonly format: string;
  readonly paths: readonly string[];
  /** PEM of authorities beside the public ones. */
  readonly caFile?: string;
}

export interface ModelLimits {
  readonly connectMs: number;
  /** To an answer's head, and between two parts of its body; models think for minutes. */
  readonly answerIdleMs: number;
  /** Between two parts of a request's body. */
  readonly bodyIdleMs: number;
  /** From the end of an answer to the next request's head, whole. */
  readonly headMs: number;
  readonly maxBodyBytes: number;
  readonly maxMs: number;
}

export const MODEL_LIMITS: ModelLimits = {
  connectMs: 10_000,
  answerIdleMs: 31 * 60_000,
  bodyIdleMs: 60_000,
  headMs: 60_000,
  maxBodyBytes: 32 * 2 ** 20,
  maxMs: 3_600_000,
};

export type ModelOutcome = 'answered' | 'cut' | ModelProblem;

export interface ModelRouteOptions {
  readonly gateway: ModelGateway;
  readonly limits?: Partial<ModelLimits>;
  readonly log: Log;
  readonly count: (outcome: ModelOutcome) => void;
}

export interface ModelRoute {
  /** Serves a tool's requests on its tunnel, one after the other. `ended` resolves when the tunnel is gone. */
  readonly serve: (client: Duplex, tool: ToolIdentity) => { readonly ended: Promise<void>; readonly end: () => void };
  /** From now on each answer is its connection's last. */
  readonly wane: () => void;
}

/** That it is not encoded was seen. */
const NOT_RETURNED: ReadonlySet<string> = new Set([...NOT_FOR_TOOLS, 'content-encoding']);

interface Serving {
  readonly tool: ToolIdentity;
  readonly wait: () => void;
  readonly busy: () => boolean;
  readonly begin: () => void;
}

export function createModelRoute(options: ModelRouteOptions): ModelRoute {
  const { gateway, log, count } = options;
  const limits = { ...MODEL_LIMITS, ...options.limits };
  const serving = new WeakMap<Duplex, Serving>();
  let waning = false;
  let known: { readonly value: string; readonly needles: readonly Needle[] } | undefined;

  // Never listens: tunnels are put in.
  const server = createServer({ maxHeaderSize: 16 * 1024, keepAlive: true }, (request, response) => {
    const here = serving.get(request.socket);
    // A second request before the first was answered: two readers could match answers and requests differently.
    if (here === undefined || here.busy()) {
      request.socket.destroy();
      return;
    }
    here.begin();
    response.once('close', here.wait);
    const started = Date.now();
    answer(request, response, here.tool)
      .then(({ outcome, status }) => {
        count(outcome);
        const { namespace, tool } = here.tool;
        log.info({ tool: `${namespace}/${tool}`, decision: outcome, status, ms: Date.now() - started }, 'model');
      })
      .catch((error) => {
        log.error({ error }, 'bug: a request to the model gateway failed');
        request.socket.destroy();
      });
  });
  server.keepAliveTimeout = 0;
  server.on('clientError', (_error, socket) => {
    if (socket.writable) socket.end('HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n');
    socket.destroy();
  });

  async function answer(request: IncomingMessage, response: ServerResponse, tool: ToolIdentity) {
    const refuse = (problem: ModelProblem) => {
      const status = answerModelRefusal(response, problem, tool, gateway.paths);
      request.resume();
      return { outcome: problem, status };
    };
    const decision = decideModelRequest(
      {
        method: request.method ?? '',
        target: request.url ?? '',
        minorVersion: request.httpVersionMinor === 1 ? 1 : 0,
        fields: fieldsOf(request.rawHeaders),
      },
      gateway.paths,
    );
    if (decision.do === 'refuse') return refuse(decision.reason);
    if (decision.framing.kind === 'length' && decision.framing.bytes > limits.maxBodyBytes) return refuse('too-large');
    if (waning || !decision.keepAlive) response.setHeader('connection', 'close');
    const key = await readKey();
    if (key === 'unusable') return refuse('key-missing');
    const headers = decision.fields.flat();
    headers.push('Host', gateway.url.host, 'Accept-Encoding', 'identity', 'Connection', 'close');
    if (key !== undefined) headers.push(gateway.header, filled(gateway.format, key.reveal()));
    if (decision.framing.kind === 'length') headers.push('Content-Length', String(decision.framing.bytes));
    if (decision.framing.kind === 'chunked') headers.push('Transfer-Encoding', 'chunked');
    const path = `${gateway.url.pathname.replace(/\/$/, '')}${decision.path}${decision.query}`;
    const came = await exchange(request, response, { method: request.method ?? '', path, headers });
    if (typeof came === 'string') return came === 'cut' ? { outcome: came, status: 0 } : refuse(came);
    const { statusCode: status = 0 } = came;
    const coding = came.headers['content-encoding'] ?? 'identity';
    // What cannot be looked through is not passed on.
    if (status < 200 || coding.toLowerCase() !== 'identity') {
      came.destroy();
      return refuse('bad-answer');
    }
    const whole = await returnAnswer(came, response, needlesOf(key));
    return { outcome: whole ? ('answered' as const) : ('cut' as const), status };
  }

  async function exchange(
    request: IncomingMessage,
    response: ServerResponse,
    asked: { method: string; path: string; headers: string[] },
  ): Promise<IncomingMessage | 'cut' | 'unreachable' | 'too-large'> {
    const ca = await extraAuthorities(gateway.caFile);
    const { promise, resolve } = Promise.withResolvers<IncomingMessage | 'cut' | 'unreachable' | 'too-large'>();
    const send = gateway.url.protocol === 'https:' ? httpsRequest : httpRequest;
    const upstream = send({
      ...asked,
      hostname: gateway.url.hostname.replace(/^\[|\]$/g, ''),
      port: gateway.url.port || undefined,
      agent: false,
      ...(ca === undefined ? {} : { ca }),
    });
    const connecting = setTimeout(() => upstream.destroy(new Error('no connection in time')), limits.connectMs);
    upstream.once('socket', (socket) => {
      socket.once(gateway.url.protocol === 'https:' ? 'secureConnect' : 'connect', () => clearTimeout(connecting));
    });
    upstream.setTimeout(limits.answerIdleMs, () => upstream.destroy(new Error('no answer in time')));
    let settled = false;
    const settle = (outcome: IncomingMessage | 'cut' | 'unreachable' | 'too-large') => {
      settled = true;
      resolve(outcome);
    };
    const left = () => {
      settle('cut');
      upstream.destroy();
    };
    response.once('close', left);
    upstream.on('response', settle);
    upstream.on('error', (error) => {
      if (settled) return;
      const { code } = error as NodeJS.ErrnoException;
      log.warn({ code: code ?? 'none', reason: error.message.slice(0, 200) }, 'the model gateway does not answer');
      settle('unreachable');
    });
    upstream.once('close', () => {
      clearTimeout(connecting);
      response.removeListener('close', left);
      settle('unreachable');
    });
    let bytes = 0;
    const idle = setTimeout(() => upstream.destroy(new Error('the request does not go on')), limits.bodyIdleMs);
    request.on('data', (part: Buffer) => {
      bytes += part.length;
      idle.refresh();
      if (bytes <= limits.maxBodyBytes) return;
      settle('too-large');
      upstream.destroy();
    });
    request.once('error', () => upstream.destroy());
    request.once('close', () => clearTimeout(idle));
    request.once('end', () => clearTimeout(idle));
    request.pipe(upstream);
    return promise;
  }

  /** Undefined: the gateway wants none. */
  async function readKey(): Promise<Secret | 'unusable' | undefined> {
    if (gateway.keyFile === undefined) return undefined;
    const reading = readBoundValue(await readFile(gateway.keyFile).catch(() => undefined));
    return reading.kind === 'value' ? reading.secret : 'unusable';
  }

  function needlesOf(key: Secret | undefined): readonly Needle[] {
    if (key === undefined) return [];
    const value = key.reveal();
    if (known?.value !== value) known = { value, needles: compileNeedles([{ value, instead: MODEL_PLACEHOLDER }]) };
    return known.needles;
  }

  return {
    serve(client, tool) {
      const { promise, resolve } = Promise.withResolvers<void>();
      let busy = false;
      const end = () => void client.destroy();
      const longest = setTimeout(end, limits.maxMs);
      const head = setTimeout(() => busy || end(), limits.headMs);
      client.once('close', () => {
        clearTimeout(longest);
        clearTimeout(head);
        resolve();
      });
      serving.set(client, {
        tool,
        busy: () => busy,
        begin: () => {
          busy = true;
        },
        wait: () => {
          busy = false;
          head.refresh();
        },
      });
      server.emit('connection', client);
      return { ended: promise, end };
    },
    wane() {
      waning = true;
    },
  };
}

/** Streams; resolves with whether all of it came and went. */
async function returnAnswer(came: IncomingMessage, response: ServerResponse, needles: readonly Needle[]) {
  const lines = fieldsOf(came.rawHeaders)
    .filter(([name]) => !NOT_RETURNED.has(name.toLowerCase()))
    .map(([name, value]) => `${name}: ${value}`);
  const clean = masked(lines.join('\r\n'), needles).split('\r\n');
  for (const line of clean) {
    const colon = line.indexOf(': ');
    // A second one of a name comes to the first.
    if (colon > 0) response.appendHeader(line.slice(0, colon), line.slice(colon + 2));
  }
  response.writeHead(came.statusCode ?? 502);
  response.flushHeaders();
  const redactor = createRedactor(needles, /^text\/event-stream\b/i.test(came.headers['content-type'] ?? ''));
  try {
    for await (const part of came) await put(response, redactor.push(part));
    await put(response, redactor.end());
  } catch {
    response.destroy();
    return false;
  }
  response.end();
  return true;
}

/** Waits until it was taken. @throws Error when nobody takes it any more */
async function put(response: ServerResponse, bytes: Buffer): Promise<void> {
  if (response.destroyed) throw new Error('the tool has left');
  if (bytes.length === 0 || response.write(bytes)) return;
  await new Promise<void>((resolve, reject) => {
    const drained = () => settle();
    const closed = () => settle(new Error('the tool has left'));
    const settle = (error?: Error) => {
      response.removeListener('drain', drained);
      response.removeListener('close', closed);
      if (error === undefined) resolve();
      else reject(error);
    };
    response.once('drain', drained);
    response.once('close', closed);
  });
}

async function extraAuthorities(file: string | undefined): Promise<string[] | undefined> {
  const pem = file === undefined ? '' : await readFile(file, 'utf8').catch(() => '');
  return pem.includes('-----BEGIN CERTIFICATE-----') ? [...getCACertificates('default'), pem] : undefined;
}

function fieldsOf(raw: readonly string[]): readonly Field[] {
  return raw.flatMap((name, i): Field[] => (i % 2 === 0 ? [[name, raw[i + 1] ?? '']] : []));
}
