import { spawnSync } from 'node:child_process';
import { describe, expect, test } from 'vitest';
import { ConfigurationError, readVariables } from './configuration.ts';
import { createHealth } from './health.ts';
import { createLog } from './log.ts';
import { createMetrics } from './metrics.ts';

function capture() {
  const lines: string[] = [];
  return { lines, log: createLog('test', { destination: { write: (line) => void lines.push(line) } }) };
}

describe('log', () => {
  test('[case 129] one line per event, whatever stands in it', () => {
    const { lines, log } = capture();
    log.info({ name: 'a\nb\u001b[31m' }, 'message\r\nforged');
    expect(lines).toHaveLength(1);
    const line = lines[0]?.trimEnd() ?? '';
    for (const forging of ['\n', '\r', '\u001b']) expect(line).not.toContain(forging);
    expect(JSON.parse(line)).toMatchObject({ component: 'test', level: 'info', name: 'a\nb\u001b[31m' });
  });

  test('what is named like a secret is not printed, long strings are cut', () => {
    const { lines, log } = capture();
    log.info({ token: 'canary', headers: { authorization: 'canary' }, text: 'x'.repeat(10_000) }, 'm');
    expect(lines.join('')).not.toContain('canary');
    expect(lines.join('').length).toBeLessThan(4_000);
  });

  test('an error shows its code and causes, and a stack only where it has no code', () => {
    const { lines, log } = capture();
    const coded = Object.assign(new Error('outer', { cause: new TypeError('inner') }), { code: 'conflict' });
    log.error({ error: coded }, 'm');
    const { error } = JSON.parse(lines[0] ?? '');
    expect(error).toMatchObject({ message: 'outer', code: 'conflict', cause: { name: 'TypeError', message: 'inner' } });
    expect(error.stack).toBeUndefined();
    expect(error.cause.stack).toContain('runtime.test');
  });
});

describe('record', () => {
  test('is the line that info would write, cut and on one line', () => {
    const { lines, log } = capture();
    const fields = { tool: 'a\nb', none: undefined, durationMs: 1.5, long: 'x'.repeat(10_000) };
    log.record(fields, 'call');
    log.info(fields, 'call');
    expect(lines).toHaveLength(2);
    const [recorded, informed] = lines.map((line) => JSON.parse(line));
    expect({ ...recorded, time: '' }).toEqual({ ...informed, time: '' });
    expect(Object.keys(recorded)).toEqual(Object.keys(informed));
    expect(recorded.time).toMatch(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
    log.record({}, 'm');
    expect(JSON.parse(lines[2] ?? '')).toMatchObject({ level: 'info', component: 'test', message: 'm' });
  });

  test('is not written where info is not', () => {
    const lines: string[] = [];
    const log = createLog('test', { level: 'warn', destination: { write: (line) => lines.push(line) } });
    log.record({ a: 1 }, 'm');
    expect(lines).toEqual([]);
  });

  test('what still waits for stdout is written when the process exits', () => {
    const url = new URL('./log.ts', import.meta.url).href;
    const script = `import { createLog } from '${url}';
      const log = createLog('test');
      for (let n = 0; n < 100; n += 1) log.record({ n }, 'm');
      log.error({}, 'last');
      process.exit(3);`;
    const { status, stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' });
    expect(status).toBe(3);
    const lines = stdout.trimEnd().split('\n');
    expect(lines).toHaveLength(101);
    expect(JSON.parse(lines[100] ?? '')).toMatchObject({ level: 'error', message: 'last' });
  });
});

describe('configuration', () => {
  test('an empty variable is an unset one', () => {
    const { text, port, check } = readVariables({ OZ0_A: 'a', OZ0_B: '', OZ0_PORT: '' });
    expect([text('OZ0_A'), text('OZ0_B', 'b'), port('OZ0_PORT', 443)]).toEqual(['a', 'b', 443]);
    expect(check).not.toThrow();
  });

  test('names every mistake at once', () => {
    const { text, port, problems, check } = readVariables({ OZ0_A: '', OZ0_PORT: '65536' });
    expect([text('OZ0_A'), port('OZ0_PORT', 443)]).toEqual(['', 443]);
    problems.push('  OZ0_MODE: must be x or y');
    expect(check).toThrow(ConfigurationError);
    expect(check).toThrow(/OZ0_A[\s\S]*OZ0_PORT[\s\S]*OZ0_MODE/);
  });
});

describe('health', () => {
  test('ready when every check holds; says which does not; draining ends it', async () => {
    const { log, lines } = capture();
    const health = createHealth(log);
    let problem: string | undefined = 'no certificate yet';
    health.addReadiness('identity', () => problem);
    await health.listen(0);
    const get = async (path: string) => {
      const response = await fetch(`http://127.0.0.1:${health.port()}${path}`);
      return { status: response.status, body: await response.text() };
    };
    try {
      expect(await get('/livez')).toMatchObject({ status: 200 });
      expect(await get('/readyz')).toEqual({
        status: 503,
        body: JSON.stringify({ ok: false, problems: { identity: 'no certificate yet' } }),
      });
      problem = undefined;
      expect(await get('/readyz')).toMatchObject({ status: 200 });
      await get('/readyz');
      expect(lines).toHaveLength(2);
      health.startDraining();
      expect(await get('/readyz')).toMatchObject({ status: 503 });
      expect(await get('/livez')).toMatchObject({ status: 200 });
      health.fail('stuck');
      expect(await get('/livez')).toMatchObject({ status: 503 });
      expect(await get('/debug')).toMatchObject({ status: 404 });
    } finally {
      await health.close();
    }
  });
});

describe('metrics', () => {
  test('names carry the component', async () => {
    const metrics = createMetrics('gateway');
    metrics.counter('calls_total', 'Calls.', ['outcome']).inc({ outcome: 'ok' });
    expect(await metrics.text()).toContain('oz0_gateway_calls_total{outcome="ok"} 1');
  });
});
