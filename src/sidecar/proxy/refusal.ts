/** What the tool is told when its request goes nowhere: fixed text, nothing of the request in it. */
import { STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import type { InjectionRefusal } from '../../domain/credential/decideInjection.ts';
import type { RequestRefusal } from '../../domain/credential/decideRequest.ts';
import type { TunnelRefusal } from '../../domain/credential/decideTunnel.ts';
import type { HeadProblem } from '../../domain/credential/requestHead.ts';
import { endClient } from './endClient.ts';

export type ProxyRefusal =
  | HeadProblem
  | TunnelRefusal
  | RequestRefusal
  | InjectionRefusal
  | 'head-too-large'
  | 'head-too-slow'
  | 'body-too-large'
  | 'bad-body'
  | 'egress-refused'
  | 'upstream-unreachable'
  | 'upstream-not-trusted'
  | 'upstream-bad-answer'
  | 'too-many-connections';

const TEXTS: Readonly<Record<ProxyRefusal, readonly [status: number, message: string]>> = {
  'bad-line-ends': [400, 'lines of a request end with CR LF'],
  'bad-request-line': [400, 'this is no request line'],
  'target-too-long': [414, 'the target is too long'],
  'bad-header': [400, 'a header is not written as "Name: value"'],
  'too-many-headers': [431, 'there are too many headers'],
  'unsupported-version': [505, 'HTTP/1.1 is spoken here'],
  'not-a-proxy-request': [400, 'this is a proxy: CONNECT, or http:// in full'],
  'bad-target': [400, 'the target is not in the one form that is taken here'],
  'wrong-host': [421, 'the Host header does not name the host of this connection'],
  'host-not-allowed': [403, 'this host is not on the list of hosts that the tool may reach'],
  'bound-host-other-port': [403, 'a secret is bound to this host: it is reached by its exact name and port only'],
  'bound-host-in-clear': [403, 'a secret is bound to this host: it is reached over https only'],
  'method-not-allowed': [405, 'this method is not passed on'],
  'bad-framing': [400, 'the length of the body is not given in one clear way'],
  'body-not-allowed': [400, 'a request with this method has no body'],
  'bad-connection-header': [400, 'the Connection header names more than keep-alive, close or upgrade'],
  'upgrade-not-allowed': [403, 'this host is not bound with websocket: true'],
  'expectation-not-met': [417, 'the one thing to expect, with a body, is 100-continue'],
  'trailers-not-allowed': [400, 'a request has no trailers'],
  'look-alike-header': [400, 'a header is spelled like another one'],
  'unknown-body-encoding': [415, 'the body has an encoding that is not known here'],
  'placeholder-out-of-place': [403, "a secret's placeholder stands where no binding puts the secret"],
  'placeholder-in-clear': [403, "a secret's placeholder goes over https only"],
  'own-credential': [403, 'a request to a bound host carries no other credential than the bound secret'],
  'signed-request': [
    403,
    'a request that is signed with its credential (such as AWS Signature 4) cannot be made with a bound secret',
  ],
  'duplicate-credential': [400, 'the credential is given twice'],
  'secret-in-request': [403, "a secret's real value is in the request"],
  'secret-unavailable': [503, 'the bound secret is missing, empty or malformed'],
  'head-too-large': [431, 'the head of the request is too large'],
  'head-too-slow': [408, 'the head of the request took too long'],
  'body-too-large': [413, 'the body is too large'],
  'bad-body': [400, 'the body does not have the form that its head announced'],
  'egress-refused': [403, 'egress does not let the tool reach this host'],
  'upstream-unreachable': [502, 'the host could not be reached'],
  'upstream-not-trusted': [502, "the host's certificate could not be verified"],
  'upstream-bad-answer': [502, 'the host did not answer with a response that can be passed on'],
  'too-many-connections': [503, 'the tool has too many connections open'],
};

const LINGER_MS = 1_000;

/**
 * Answers, and ends the connection: what comes after a refused request is not read as another one.
 * @param detail egress' own words, which are ours as well
 */
export function answerRefusal(client: Duplex, refusal: ProxyRefusal, detail?: string): void {
  const [status, message] = TEXTS[refusal];
  const body = JSON.stringify({
    error: {
      code: refusal,
      message: detail === undefined ? message : `${message}: ${detail}`,
      by: 'oz0 credential proxy',
    },
  });
  endClient(
    client,
    LINGER_MS,
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\nContent-Type: application/json\r\n` +
      `Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  );
}
