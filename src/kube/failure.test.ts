import { describe, expect, it } from 'vitest';
import { failureOfAnswer, failureOfStatus, failureOfThrown } from './failure.ts';

const status = (body: object) => JSON.stringify({ kind: 'Status', apiVersion: 'v1', status: 'Failure', ...body });

describe('failureOfAnswer', () => {
  it.each([
    [409, status({ reason: 'Conflict', code: 409 }), 'conflict'],
    [409, status({ reason: 'AlreadyExists', code: 409 }), 'exists'],
    [404, status({ reason: 'NotFound', code: 404 }), 'notFound'],
    [404, '404 page not found', 'notFound'],
    [410, status({ reason: 'Expired', code: 410 }), 'gone'],
    [401, status({ reason: 'Unauthorized', code: 401 }), 'unauthorized'],
    [403, status({ reason: 'Forbidden', code: 403 }), 'forbidden'],
    [422, status({ reason: 'Invalid', code: 422 }), 'invalid'],
    [413, '', 'invalid'],
    [429, '', 'tooManyRequests'],
    [500, status({ reason: 'InternalError', code: 500 }), 'server'],
    [503, '<html>', 'server'],
    [504, status({ reason: 'Timeout', code: 504 }), 'timeout'],
    [302, '', 'malformed'],
  ])('%i %s is %s', (code, body, expected) => {
    expect(failureOfAnswer(code, body, undefined)).toMatchObject({ code: expected, status: code });
  });

  it('has a message of one short line without the body', () => {
    const long = failureOfAnswer(500, status({ message: `a\nb\u001b[31m${'x'.repeat(5000)}`, code: 500 }), undefined);
    expect(long.message).toHaveLength(400);
    expect(long.message).toMatch(/^a b \[31mx+…$/);
    expect(failureOfAnswer(503, '<html>secret</html>', undefined).message).toBe('The API server answered 503.');
  });

  it('reads Retry-After from header and details, within an hour', () => {
    expect(failureOfAnswer(429, '', '7').retryAfterMs).toBe(7000);
    expect(failureOfAnswer(429, status({ details: { retryAfterSeconds: 3 } }), undefined).retryAfterMs).toBe(3000);
    expect(failureOfAnswer(429, '', '999999999').retryAfterMs).toBe(3_600_000);
    expect(failureOfAnswer(429, '', 'Wed, 21 Oct 2026 07:28:00 GMT').retryAfterMs).toBeUndefined();
  });

  it('names the fields at fault', () => {
    const body = status({ code: 422, details: { causes: [{ field: 'spec.a' }, {}, { field: 'spec.b' }] } });
    expect(failureOfAnswer(422, body, undefined).fields).toEqual(['spec.a', 'spec.b']);
  });

  it('takes nonsense', () => {
    for (const value of [undefined, null, 3, [], 'x', { code: 'x', details: { causes: 3 } }]) {
      expect(failureOfStatus(value)).toMatchObject({ code: 'server' });
    }
  });
});

describe('failureOfThrown', () => {
  it('tells time from connection', () => {
    const late = Object.assign(new Error('x'), { code: 'UND_ERR_CONNECT_TIMEOUT' });
    expect(failureOfThrown(late)).toMatchObject({ code: 'timeout' });
    const reset = new TypeError('fetch failed', { cause: Object.assign(new Error('x'), { code: 'ECONNRESET' }) });
    expect(failureOfThrown(reset)).toMatchObject({
      code: 'network',
      message: 'The connection to the API server failed (ECONNRESET).',
    });
    expect(failureOfThrown('odd')).toMatchObject({ code: 'network' });
  });
});
