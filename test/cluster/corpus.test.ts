import { env } from 'node:process';
import { describe, expect, test } from 'vitest';
import { kubeconfig } from '../../hack/cluster/layout.ts';
import { readStored } from '../../src/api/judge.ts';
import { KINDS } from '../../src/api/kinds.ts';
import { CORPUS } from '../corpus/corpus.ts';
import { createDryRun } from '../corpus/dryRun.ts';
import { component } from './actors.ts';

const dryRun = createDryRun(env['KUBECONFIG'] ?? kubeconfig, 'default');

interface Refusal {
  readonly message: string;
  readonly details?: { readonly causes?: readonly { readonly field: string }[] };
}

/** The fields that a refusal blames; a rule over the whole object blames `<nil>`, a strict decoding error names fields in its text. */
function blamed(body: unknown): string[] {
  const { message, details } = body as Refusal;
  const strict = [...message.matchAll(/unknown field "([^"]+)"/g)].map(([, field = '']) => field);
  return [...strict, ...(details?.causes ?? []).map(({ field }) => (field === '<nil>' ? '' : field))];
}

describe('[D03] the API server judges the corpus as the schemas do', () => {
  // `spec.plugin` is the controller's to set, and a cluster is stopped from one namespace: admission watches over both.
  const guarded: Record<string, string> = { Tool: '"plugin":', Stop: '"cluster":true' };
  const cases = CORPUS.filter(({ object }) => !JSON.stringify(object).includes(guarded[object.kind] ?? '{{'));
  const writers: Record<string, string> = { ToolCall: component('gateway').user };

  test.for(cases)('$name', async ({ object, wrong }) => {
    const { status, body } = await dryRun(object, writers[object.kind]);
    if (wrong !== undefined) {
      expect([400, 422], JSON.stringify(body)).toContain(status);
      const fields = blamed(body);
      expect(
        fields.some((field) => (wrong === '' ? field === '' : field.startsWith(wrong))),
        `${fields}`,
      ).toBe(true);
      return;
    }
    expect(status, JSON.stringify(body)).toBe(201);
    const schema = KINDS.find(({ kind }) => kind === object.kind)?.schema;
    const read = schema && readStored(schema, object);
    expect(read, 'the same defaults').toMatchObject({ ok: true, value: { spec: (body as { spec: unknown }).spec } });
    expect(body, 'the same defaults').toMatchObject(read?.ok ? { spec: (read.value as { spec: object }).spec } : {});
  });
});
