/**
 * What the policy's word on a call costs, with 10, 1,000 and 10,000 rules and as many functions, as ratios to reading the
 * call's JSON in the same run: a decision on ten functions among them, which is to stay flat in the rules of the others; on
 * all in turn, which is dearer by what the processor's caches do not hold; and what a function's first call after a change
 * of policy pays once, which grows with the policies (of at most 256 rules), not with the rules.
 *
 *   node test/bench/policy.ts [--quick]
 */
import { loadavg } from 'node:os';
import { POLICY_RULES_MAX } from '../../src/api/policyFields.ts';
import { type CompiledPolicy, compilePolicy } from '../../src/domain/policy/compilePolicy.ts';
import { decidePolicy, type PolicyCall } from '../../src/domain/policy/decidePolicy.ts';
import { type FunctionPolicy, functionPolicy } from '../../src/domain/policy/functionPolicy.ts';

const quick = process.argv.includes('--quick');
const COUNTS = [10, 1_000, 10_000];
const ROUNDS = quick ? 5 : 15;
const CALLS = quick ? 10_000 : 50_000;

const ARGUMENTS = { repo: 'acme/site', number: 7, force: false, note: 'y'.repeat(160) };
const BODY = JSON.stringify({
  jsonrpc: '2.0',
  id: 1,
  method: 'tools/call',
  params: { name: 'x', arguments: ARGUMENTS },
});
const CALL: PolicyCall = {
  args: ARGUMENTS,
  agent: { name: 'clerk', namespace: 'acme', serviceAccount: 'clerk' },
  shadow: false,
  job: { proved: false },
  labels: [],
};

interface Subject {
  readonly name: string;
  /** One of many like it; the number says which. */
  readonly run: (at: number) => unknown;
  /** Nanoseconds each; the best round, since noise only adds. */
  best: number;
}

/** A rule for each function, in as many policies as it takes. */
function policiesOf(count: number): readonly CompiledPolicy[] {
  const rules = Array.from({ length: count }, (_, at) => ({
    name: `r${at}`,
    functions: [`bench.f${at}`],
    when: "args.force == true || args.repo.startsWith('vendor/')",
    do: 'refuse',
  }));
  return Array.from({ length: Math.ceil(count / POLICY_RULES_MAX) }, (_, at) => {
    const policy = compilePolicy('ToolPolicy', {
      apiVersion: 'oz0.ai/v1alpha1',
      kind: 'ToolPolicy',
      metadata: { name: `p${at}`, namespace: 'acme' },
      spec: { rules: rules.slice(at * POLICY_RULES_MAX, (at + 1) * POLICY_RULES_MAX) },
    });
    if (policy.problems.length > 0) throw new Error(policy.problems[0]?.message);
    return policy;
  });
}

function gather(policies: readonly CompiledPolicy[], at: number): FunctionPolicy {
  return functionPolicy({
    tool: 'bench',
    function: `f${at}`,
    kind: 'Additive',
    openWorld: true,
    namespacePolicies: policies,
    clusterPolicies: [],
  });
}

const baseline: Subject = {
  name: 'reading the JSON of the call',
  run: () => JSON.parse(BODY),
  best: Number.POSITIVE_INFINITY,
};
const subjects = [baseline];
for (const count of COUNTS) {
  const policies = policiesOf(count);
  const gathered = Array.from({ length: count }, (_, at) => gather(policies, at));
  const decide = (at: number): unknown => {
    const policy = gathered[at % count];
    return policy === undefined ? undefined : decidePolicy(policy, CALL);
  };
  const said = JSON.stringify(decide(0));
  if (said !== '{"do":"run"}') throw new Error(`decided ${said}`);
  const shown = count.toLocaleString('en');
  const best = Number.POSITIVE_INFINITY;
  subjects.push({ name: `a decision, ${shown} rules`, run: (at) => decide((at % 10) * (count / 10)), best });
  subjects.push({ name: `on all in turn, ${shown} rules`, run: decide, best });
  subjects.push({ name: `once a change, ${shown} rules`, run: (at) => gather(policies, at % count), best });
}

// Rounds alternate between subjects, so that a noisy moment hits all of them.
for (let round = 0; round < ROUNDS; round += 1) {
  for (const subject of subjects) {
    const from = process.hrtime.bigint();
    // In steps that share no divisor with the counts, so that no cache is luckier with few.
    for (let call = 0; call < CALLS; call += 1) subject.run(call * 7_919);
    subject.best = Math.min(subject.best, Number(process.hrtime.bigint() - from) / CALLS);
  }
}
console.table(
  subjects.map(({ name, best }) => ({
    '': name,
    µs: (best / 1_000).toFixed(2),
    '÷ reading': (best / baseline.best).toFixed(2),
  })),
);
console.log(`load of the machine: ${loadavg()[0]?.toFixed(1)}, Node ${process.version}`);
