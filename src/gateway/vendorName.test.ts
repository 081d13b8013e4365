import { expect, test } from 'vitest';
import { vendorName } from './vendorName.ts';

test('[P01] [case 57] names stay as they are where vendors take them; others get safe, short and distinct ones', () => {
  expect(vendorName('acme_github', 'get_pr')).toBe('acme_github__get_pr');
  const odd = ['get.pr', 'get/pr', 'get_pr', 'get-pr', `${'x'.repeat(90)}.a`, `${'x'.repeat(90)}/a`, 'x'.repeat(90)];
  const names = odd.map((name) => vendorName('acme_github', name));
  for (const name of names) expect(name).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
  expect(new Set(names).size).toBe(odd.length);
  expect(vendorName('acme_github', 'get.pr')).toMatch(/^acme_github__get_pr_[0-9a-f]{8}$/);
});
