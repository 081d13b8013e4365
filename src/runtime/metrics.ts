/** Prometheus metrics of a process, on a port of their own so that a scrape and a call never share a server. */
import { createServer } from 'node:http';
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { closeServer, listenOn } from './health.ts';

export interface Metrics {
  counter<L extends string>(name: string, help: string, labels: readonly L[]): Counter<L>;
  gauge<L extends string>(name: string, help: string, labels: readonly L[]): Gauge<L>;
  histogram<L extends string>(
    name: string,
    help: string,
    labels: readonly L[],
    buckets: readonly number[],
  ): Histogram<L>;
  /** The exposition as text. */
  text(): Promise<string>;
  listen(port: number): Promise<void>;
  close(): Promise<void>;
}

/** Names get the prefix `oz0_<component>_`; units are in the name; label values come from closed sets only. */
export function createMetrics(component: string): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const prefix = `oz0_${component}_`;
  const server = createServer((request, response) => {
    if (request.url !== '/metrics') {
      response.writeHead(404).end();
      return;
    }
    registry.metrics().then(
      (text) => response.writeHead(200, { 'content-type': registry.contentType }).end(text),
      () => response.writeHead(500).end(),
    );
  });
  server.headersTimeout = 5_000;
  server.requestTimeout = 5_000;
  server.maxConnections = 16;
  return {
    counter: (name, help, labels) =>
      new Counter({ name: `${prefix}${name}`, help, labelNames: [...labels], registers: [registry] }),
    gauge: (name, help, labels) =>
      new Gauge({ name: `${prefix}${name}`, help, labelNames: [...labels], registers: [registry] }),
    histogram: (name, help, labels, buckets) =>
      new Histogram({
        name: `${prefix}${name}`,
        help,
        labelNames: [...labels],
        buckets: [...buckets],
        registers: [registry],
      }),
    text: () => registry.metrics(),
    listen: (port) => listenOn(server, port),
    close: () => closeServer(server),
  };
}
