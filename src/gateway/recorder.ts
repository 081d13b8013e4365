/** Writes each call's record as one log line and as metrics, whose labels come from closed sets. */
import type { Log } from '../runtime/log.ts';
import type { Metrics } from '../runtime/metrics.ts';
import type { CallRecord, Recorder } from './record.ts';
import { createUsageMeter } from './usageMeter.ts';

const SECONDS = [0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];

export function createRecorder(log: Log, metrics: Metrics): Recorder {
  const calls = metrics.counter('calls_total', 'Calls by how they ended.', ['outcome', 'reason']);
  const seconds = metrics.histogram(
    'call_duration_seconds',
    'Time from the decision to the end of a call.',
    ['outcome'],
    SECONDS,
  );
  const meter = createUsageMeter(metrics);
  let waiting: CallRecord[] = [];
  const write = (): void => {
    const records = waiting;
    waiting = [];
    for (const record of records) {
      calls.inc({ outcome: record.outcome, reason: record.reason });
      seconds.observe({ outcome: record.outcome }, record.durationMs / 1_000);
      const { usage, ...fields } = record;
      if (usage !== undefined) meter(record.namespace, usage);
      log.record({ ...fields, durationMs: Math.round(record.durationMs * 10) / 10 }, 'call');
    }
  };
  // Before the log's own last lines are written, which it does at the exit too.
  process.prependListener('exit', write);
  return {
    called: (record) => {
      // In this turn still, but after the caller was answered.
      if (waiting.push(record) === 1) setImmediate(write);
    },
  };
}
