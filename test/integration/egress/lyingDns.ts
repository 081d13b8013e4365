/** A DNS server on loopback that says what a test tells it to, over UDP and TCP, and counts what it was asked. */
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';

export type RecordType = 'A' | 'AAAA' | 'CNAME' | 'OTHER';

export interface Question {
  readonly name: string;
  readonly type: RecordType;
  /** How often this name and type was asked before. */
  readonly before: number;
  readonly over: 'udp' | 'tcp';
}

export interface DnsRecord {
  /** Owner; unset: the name that was asked. */
  readonly name?: string;
  readonly type: 'A' | 'AAAA' | 'CNAME' | 'HTTPS';
  readonly value: string;
  readonly ttl?: number;
}

export interface DnsAnswer {
  readonly records?: readonly DnsRecord[];
  readonly additional?: readonly DnsRecord[];
  /** 2 SERVFAIL, 3 NXDOMAIN, 5 REFUSED. */
  readonly rcode?: number;
  /** Tell the client to ask again over TCP. */
  readonly truncated?: boolean;
  readonly wrongId?: boolean;
  /** Echo this question in place of the client's. */
  readonly question?: string;
}

/** Undefined: no answer at all. */
export type Zone = (question: Question) => DnsAnswer | undefined;

export interface LyingDns {
  readonly server: string;
  zone: Zone;
  readonly asked: Question[];
  close(): Promise<void>;
}

const TYPES: Readonly<Record<number, RecordType>> = { 1: 'A', 28: 'AAAA', 5: 'CNAME' };
const CODES = { A: 1, AAAA: 28, CNAME: 5, HTTPS: 65 } as const;

export async function startLyingDns(
  zone: Zone = () => ({ rcode: 3 }),
  at: { readonly host: string; readonly port: number } = { host: '127.0.0.1', port: 0 },
): Promise<LyingDns> {
  const asked: Question[] = [];
  const dns: { zone: Zone } = { zone };
  const answer = (query: Buffer, over: 'udp' | 'tcp'): Buffer | undefined => {
    const { name, type, end } = readQuestion(query);
    const before = asked.filter((each) => each.name === name && each.type === type).length;
    const question: Question = { name, type, before, over };
    asked.push(question);
    const said = dns.zone(question);
    return said && writeAnswer(query, end, name, said);
  };
  const tcp = createServer((socket) => {
    let held = Buffer.alloc(0);
    socket.on('error', () => {});
    socket.on('data', (part: Buffer) => {
      held = Buffer.concat([held, part]);
      while (held.length >= 2 && held.length >= 2 + held.readUInt16BE(0)) {
        const length = held.readUInt16BE(0);
        const reply = answer(held.subarray(2, 2 + length), 'tcp');
        held = held.subarray(2 + length);
        if (reply === undefined) continue;
        const head = Buffer.alloc(2);
        head.writeUInt16BE(reply.length);
        socket.write(Buffer.concat([head, reply]));
      }
    });
  });
  tcp.listen(at.port, at.host);
  await once(tcp, 'listening');
  const { port } = tcp.address() as AddressInfo;
  const udp = createSocket('udp4');
  udp.on('message', (query, from) => {
    const reply = answer(query, 'udp');
    if (reply !== undefined) udp.send(reply, from.port, from.address);
  });
  udp.bind(port, at.host);
  await once(udp, 'listening');
  return Object.assign(dns, {
    server: `${at.host}:${port}`,
    asked,
    async close() {
      udp.close();
      await new Promise((resolve) => tcp.close(resolve));
    },
  });
}

/** Addresses by name, the same each time. */
export function fixedZone(names: Readonly<Record<string, readonly string[]>>): Zone {
  return ({ name, type }) => {
    const addresses = names[name.toLowerCase()];
    if (addresses === undefined) return { rcode: 3 };
    const family = type === 'AAAA' ? 'AAAA' : 'A';
    return {
      records: addresses
        .filter((address) => (type === 'AAAA') === address.includes(':'))
        .map((value) => ({ type: family, value })),
    };
  };
}

function readQuestion(query: Buffer): { name: string; type: RecordType; end: number } {
  const labels: string[] = [];
  let at = 12;
  for (let length = query[at] ?? 0; length > 0; length = query[at] ?? 0) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length));
    at += 1 + length;
  }
  return { name: labels.join('.'), type: TYPES[query.readUInt16BE(at + 1)] ?? 'OTHER', end: at + 5 };
}

function writeAnswer(query: Buffer, questionEnd: number, name: string, said: DnsAnswer): Buffer {
  const records = said.truncated ? [] : (said.records ?? []);
  const additional = said.additional ?? [];
  const head = Buffer.alloc(12);
  head.writeUInt16BE(said.wrongId ? query.readUInt16BE(0) ^ 0x5555 : query.readUInt16BE(0), 0);
  head.writeUInt16BE(0x8180 | (said.truncated ? 0x0200 : 0) | (said.rcode ?? 0), 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt16BE(records.length, 6);
  head.writeUInt16BE(additional.length, 10);
  const question =
    said.question === undefined
      ? query.subarray(12, questionEnd)
      : Buffer.concat([writeName(said.question), query.subarray(questionEnd - 4, questionEnd)]);
  return Buffer.concat([head, question, ...[...records, ...additional].map((record) => writeRecord(name, record))]);
}

function writeRecord(name: string, record: DnsRecord): Buffer {
  const data = writeData(record);
  const fixed = Buffer.alloc(10);
  fixed.writeUInt16BE(CODES[record.type], 0);
  fixed.writeUInt16BE(1, 2);
  fixed.writeUInt32BE(record.ttl ?? 0, 4);
  fixed.writeUInt16BE(data.length, 8);
  return Buffer.concat([writeName(record.name ?? name), fixed, data]);
}

function writeData({ type, value }: DnsRecord): Buffer {
  switch (type) {
    case 'A':
      return Buffer.from(value.split('.').map(Number));
    case 'AAAA':
      return Buffer.from(expand(value).flatMap((group) => [group >> 8, group & 0xff]));
    case 'CNAME':
      return writeName(value);
    case 'HTTPS':
      // Priority 1, the owner's own name, ipv4hint.
      return Buffer.concat([Buffer.from([0, 1, 0, 0, 4, 0, 4]), Buffer.from(value.split('.').map(Number))]);
  }
}

function writeName(name: string): Buffer {
  const labels = name === '' ? [] : name.split('.');
  return Buffer.concat([
    ...labels.map((label) => Buffer.concat([Buffer.from([label.length]), Buffer.from(label, 'latin1')])),
    Buffer.from([0]),
  ]);
}

function expand(text: string): number[] {
  const groups = (part: string) => (part === '' ? [] : part.split(':').map((group) => Number.parseInt(group, 16)));
  const [head = '', tail] = text.split('::');
  if (tail === undefined) return groups(head);
  const [before, after] = [groups(head), groups(tail)];
  return [...before, ...new Array<number>(8 - before.length - after.length).fill(0), ...after];
}
