/** Counts what successful calls spend. Names come from objects that many people write, so how many are kept apart is bounded. */
import type { Metrics } from '../runtime/metrics.ts';
import type { Usage } from './overrides/override.ts';

const MAX_SERIES = 500;
const OTHER = 'other';

export function createUsageMeter(metrics: Metrics): (namespace: string, usage: Usage) => void {
  const units = metrics.counter('usage_units_total', 'What successful calls spent, in units of a service.', [
    'namespace',
    'service',
    'unit',
  ]);
  const dollars = metrics.counter('usage_cost_usd_total', 'What successful calls cost, in US dollars.', [
    'namespace',
    'service',
  ]);
  const known = new Set<string>();
  return (namespace, { service, unit, units: spent, costUsd }) => {
    const series = JSON.stringify([namespace, service, unit]);
    // Units of different things add up to nothing, so beyond the bound only money is kept.
    if (known.has(series) || known.size < MAX_SERIES) {
      known.add(series);
      units.inc({ namespace, service, unit }, spent);
      dollars.inc({ namespace, service }, costUsd);
    } else {
      dollars.inc({ namespace: OTHER, service: OTHER }, costUsd);
    }
  };
}
