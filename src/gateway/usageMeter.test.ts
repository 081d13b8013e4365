import { expect, test } from 'vitest';
import { createMetrics } from '../runtime/metrics.ts';
import { createUsageMeter } from './usageMeter.ts';

test('[P07] units and dollars add up by service; beyond a bound of names only dollars do', async () => {
  const metrics = createMetrics('gateway');
  const meter = createUsageMeter(metrics);
  const usage = { service: 'tracker-ai', unit: 'credit', units: 2, costUsd: 0.25 };
  meter('acme', usage);
  meter('acme', usage);
  for (let n = 0; n < 1_000; n += 1) meter('acme', { ...usage, unit: `unit-${n}` });
  meter('acme', usage);
  const written = await metrics.text();
  expect(written).toContain('oz0_gateway_usage_units_total{namespace="acme",service="tracker-ai",unit="credit"} 6');
  expect(written.match(/^oz0_gateway_usage_units_total\{/gm)).toHaveLength(500);
  expect(written).toContain('oz0_gateway_usage_cost_usd_total{namespace="acme",service="tracker-ai"} 125.5');
  expect(written).toContain('oz0_gateway_usage_cost_usd_total{namespace="other",service="other"} 125.25');
});
