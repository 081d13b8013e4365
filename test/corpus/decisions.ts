/** Objects of policies, stops, approvals, calls, and of what a Tool says of its server's functions. */
import {
  agent,
  type Case,
  clusterToolPolicy,
  DIGEST,
  entry,
  imageTool,
  many,
  plugin,
  right,
  type Spec,
  snapshotApproval,
  stop,
  toolCall,
  toolPolicy,
  wrong,
} from './build.ts';

const rule = (fields: Spec = {}) => ({ name: 'merges', functions: ['acme_github.merge'], do: 'wait', ...fields });
const ruled = (...rules: Spec[]) => toolPolicy({ rules });
const governing = (...functions: unknown[]) => ruled(rule({ functions }));
const decidedBy = (deciders: Spec) => ruled(rule({ deciders }));

const policies: Case[] = [
  right('nothing said', toolPolicy({})),
  right(
    'everything',
    toolPolicy({
      kinds: { readOnly: 'run', additive: 'run', destructive: 'wait', undeclared: 'refuse' },
      newVersions: 'accept',
      aiLabel: '[AI agent] ',
      deciders: { groups: ['oz0:operators'] },
      rules: [
        rule({ deciders: { roles: ['release-managers'], groups: ['oz0:operators', 'ä b'], notStarter: true } }),
        {
          name: 'never-force',
          functions: ['acme_github.*'],
          openWorld: true,
          when: 'args.force == true',
          do: 'refuse',
          because: 'Force pushes are done by people.',
        },
        { name: 'rest', functions: ['*'], do: 'run' },
      ],
    }),
  ),
  right('256 rules', ruled(...many(256, (index) => rule({ name: `r${index}` })))),
  wrong('257 rules', ruled(...many(257, (index) => rule({ name: `r${index}` }))), 'spec.rules'),
  wrong('a rule twice', ruled(rule(), rule({ do: 'run' })), 'spec.rules'),
  ...['name', 'functions', 'do'].map((field) =>
    wrong(`rule without ${field}`, ruled({ ...rule(), [field]: undefined }), `spec.rules[0].${field}`),
  ),
  ...['', 'Merges', 'a b', '-a', 'a-', 'a'.repeat(64)].map((name) =>
    wrong(`rule named ${JSON.stringify(name)}`, ruled(rule({ name })), 'spec.rules[0].name'),
  ),
  wrong('verdict of another word', ruled(rule({ do: 'deny' })), 'spec.rules[0].do'),
  wrong('kind of another word', toolPolicy({ kinds: { readonly: 'run' } }), 'spec.kinds.readonly'),
  wrong('verdict of a kind of another word', toolPolicy({ kinds: { additive: 'allow' } }), 'spec.kinds.additive'),
  wrong('new versions of another word', toolPolicy({ newVersions: 'approve' }), 'spec.newVersions'),
  right('functions', governing('a.b', 'a.B-c.d/e_1', 'a_b.*', '*')),
  wrong('no functions', governing(), 'spec.rules[0].functions'),
  wrong('a function twice', governing('a.*', 'a.*'), 'spec.rules[0].functions'),
  ...['a', 'a.', '.b', '*.*', '*.b', 'a.b*', 'a.*b', 'a b.c', 'acme-github.merge', 'a__b.c', 'A.b', 'a.b\n', ''].map(
    (pattern) => wrong(`functions ${JSON.stringify(pattern)}`, governing(pattern), 'spec.rules[0].functions'),
  ),
  wrong('an empty condition', ruled(rule({ when: '' })), 'spec.rules[0].when'),
  // Whether it compiles is a condition's to say: one API server's CEL is not the gateway's.
  right('a condition that does not compile', ruled(rule({ when: 'args.force ==' }))),
  wrong('a condition without measure', ruled(rule({ when: 'a'.repeat(2049) })), 'spec.rules[0].when'),
  wrong('a reason of two lines', ruled(rule({ because: 'a\nb' })), 'spec.rules[0].because'),
  ...['\u0007', '\u202e', '\u200b', '\u2028', '\ufeff', '\u009b'].map((hidden) =>
    wrong(
      `a label that holds U+${hidden.charCodeAt(0).toString(16)}`,
      toolPolicy({ aiLabel: `[AI]${hidden}` }),
      'spec.aiLabel',
    ),
  ),
  right('a label in another script', toolPolicy({ aiLabel: '【人工知能】🤖 ' })),
  wrong('an empty label', toolPolicy({ aiLabel: '' }), 'spec.aiLabel'),
  wrong('a label of 65 characters', toolPolicy({ aiLabel: 'a'.repeat(65) }), 'spec.aiLabel'),
  right('deciders that are nobody yet', decidedBy({ roles: [], groups: [] })),
  wrong('deciders of a rule that refuses', ruled(rule({ do: 'refuse', deciders: {} })), 'spec.rules[0].deciders'),
  wrong('a role that is none', decidedBy({ roles: ['Release Managers'] }), 'spec.rules[0].deciders.roles'),
  wrong('9 roles', decidedBy({ roles: many(9, (index) => `r${index}`) }), 'spec.rules[0].deciders.roles'),
  wrong('a group twice', decidedBy({ groups: ['a', 'a'] }), 'spec.rules[0].deciders.groups'),
  wrong('an empty group', decidedBy({ groups: [''] }), 'spec.rules[0].deciders.groups'),
  wrong('notStarter as text', decidedBy({ notStarter: 'yes' }), 'spec.rules[0].deciders.notStarter'),
  right('a floor', clusterToolPolicy({ kinds: { destructive: 'wait' }, newVersions: 'wait', rules: [rule()] })),
  wrong('a floor that lets new versions in', clusterToolPolicy({ newVersions: 'accept' }), 'spec.newVersions'),
  wrong('a floor with a label', clusterToolPolicy({ aiLabel: '[AI] ' }), 'spec.aiLabel'),
];

const stops: Case[] = [
  right('stop of a tool', stop({ tool: 'acme-github', because: 'Incident 12' })),
  right('stop of a plugin', stop({ plugin: 'acme-github' })),
  right('stop of an agent', stop({ agent: 'acme.reviewer' })),
  right('stop of a namespace', stop({ all: true })),
  right('stop of the cluster', stop({ cluster: true })),
  wrong('stop of nothing', stop({}), 'spec'),
  wrong('stop of two', stop({ tool: 'a', agent: 'b' }), 'spec'),
  wrong('stop of a tool and of all', stop({ tool: 'a', all: true }), 'spec'),
  wrong('stop of not all', stop({ all: false }), 'spec'),
  wrong('stop of not the cluster', stop({ cluster: false }), 'spec'),
  wrong('stop of a tool by its id', stop({ tool: 'acme_github' }), 'spec.tool'),
  wrong('stop of a tool without name', stop({ tool: '' }), 'spec.tool'),
  wrong('reason that rewrites itself', stop({ all: true, because: 'a\u202eb' }), 'spec.because'),
];

const approvals: Case[] = [
  right('approval', snapshotApproval({ tool: 'acme-github', hash: DIGEST, note: 'reviewed by jane in change 812' })),
  wrong('approval of no hash', snapshotApproval({ tool: 'a' }), 'spec.hash'),
  wrong('approval of no tool', snapshotApproval({ hash: DIGEST }), 'spec.tool'),
  wrong('approval of a tool by its id', snapshotApproval({ tool: 'acme_github', hash: DIGEST }), 'spec.tool'),
  ...[DIGEST.slice(7), DIGEST.toUpperCase(), DIGEST.slice(0, -1), `${DIGEST}0`, `sha512:${DIGEST.slice(7)}`].map(
    (hash) => wrong(`approval of ${hash}`, snapshotApproval({ tool: 'a', hash }), 'spec.hash'),
  ),
  wrong('a note of two lines', snapshotApproval({ tool: 'a', hash: DIGEST, note: 'a\nb' }), 'spec.note'),
];

const TIME = '2026-12-01T10:00:00Z';
const sender = { pod: 'u-1', nonce: 'n-1', node: 'node1' };
const sent = (spec: Spec = {}) => toolCall({ sender, notAfter: TIME, ...spec });
const decision = { verdict: 'approve', by: 'jane@example.com', uid: 'u-2' };
const answer = { outcome: 'happened', by: 'jane@example.com', uid: 'u-2' };
const job = (fields: Spec) => toolCall({ job: { id: 'j-1', ...fields } });

const calls: Case[] = [
  right('call that waits', toolCall({})),
  right(
    'call that waits, with everything',
    toolCall({
      job: { id: 'j-1', startedBy: 'jane@example.com', proved: true },
      arguments: { repo: 'acme/site', nested: { number: 7, list: [1, 'a', null] } },
      rule: 'default/merges',
      because: 'Merges are looked at.',
      labels: ['outside'],
      callId: 'call-1',
      deciders: [{ groups: ['oz0:operators'], notStarter: true }, { roles: ['release-managers'] }],
    }),
  ),
  right('call that is sent at once', sent()),
  ...['agent', 'agentUid', 'caller', 'tool', 'function', 'argumentsHash', 'definition', 'policy'].map((field) =>
    wrong(`call without ${field}`, toolCall({ [field]: undefined }), `spec.${field}`),
  ),
  wrong('call without its key', toolCall({ idempotencyKey: undefined }), 'spec.idempotencyKey'),
  wrong('call that never expires', toolCall({ expiresAt: undefined }), 'spec.expiresAt'),
  wrong('call of a tool by its name', toolCall({ tool: 'acme-github' }), 'spec.tool'),
  wrong('call of a function with a space', toolCall({ function: 'a b' }), 'spec.function'),
  wrong('hash of another form', toolCall({ argumentsHash: 'abc' }), 'spec.argumentsHash'),
  wrong('arguments that are a list', toolCall({ arguments: [] }), 'spec.arguments'),
  right('times of a leap year', toolCall({ expiresAt: '2028-02-29T23:59:59.123456789Z' })),
  ...[
    '2026-12-01',
    '2026-12-01T10:00Z',
    '2026-12-01 10:00:00Z',
    '2026-12-01T10:00:00',
    '2026-12-01T10:00:00+01:00',
    '2026-02-30T10:00:00Z',
    '2026-02-29T10:00:00Z',
    '2026-13-01T10:00:00Z',
    '2026-12-01T24:00:00Z',
    '2026-12-01T10:60:00Z',
    '2026-12-01T10:00:61Z',
    '1 December 2026',
    '',
  ].map((time) => wrong(`time ${JSON.stringify(time)}`, toolCall({ expiresAt: time }), 'spec.expiresAt')),
  wrong('proved of nobody', job({ proved: true }), 'spec.job.proved'),
  right('said and not proved', job({ startedBy: 'jane@example.com' })),
  wrong('a label twice', toolCall({ labels: ['outside', 'outside'] }), 'spec.labels'),
  wrong('sent at once, without an end', toolCall({ sender }), 'spec.notAfter'),
  wrong('an end of what is not sent', toolCall({ notAfter: TIME }), 'spec.notAfter'),
  wrong('sent at once, with arguments', sent({ arguments: {} }), 'spec.sender'),
  wrong('sent at once, with deciders', sent({ deciders: [{}] }), 'spec.sender'),
  wrong('sent at once, and decided', sent({ decision }), 'spec.sender'),
  wrong('sender without node', toolCall({ sender: { pod: 'u', nonce: 'n' }, notAfter: TIME }), 'spec.sender.node'),
  wrong('9 groups of deciders', toolCall({ deciders: many(9, () => ({})) }), 'spec.deciders'),
  wrong('a decider who is no list', toolCall({ deciders: { groups: ['a'] } }), 'spec.deciders'),
  ...[{ verdict: 'maybe' }, { by: undefined }, { uid: undefined }, { by: '' }, { note: 'a\nb' }].map((field) =>
    wrong(
      `decision with ${JSON.stringify(field)} ${Object.keys(field)}`,
      toolCall({ decision: { ...decision, ...field } }),
      `spec.decision.${Object.keys(field)}`,
    ),
  ),
  ...[{ outcome: 'run-again' }, { by: undefined }, { uid: undefined }].map((field) =>
    wrong(
      `answer with ${JSON.stringify(field)} ${Object.keys(field)}`,
      sent({ answer: { ...answer, ...field } }),
      `spec.answer.${Object.keys(field)}`,
    ),
  ),
  wrong('answer to what was denied', toolCall({ decision: { ...decision, verdict: 'deny' }, answer }), 'spec.answer'),
  wrong('unknown field of a decision', toolCall({ decision: { ...decision, when: TIME } }), 'spec.decision.when'),
];

const of = (override: Spec, name = 'update_issue') => imageTool({ functions: { [name]: override } });
const costing = (usage: Spec) => of({ usage: { service: 'tracker-ai', unit: 'credit', units: 1, ...usage } });
const at = 'spec.functions.update_issue';

const overrides: Case[] = [
  right(
    'overrides',
    imageTool({
      functions: {
        update_issue: {
          annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: true },
          aiLabel: '/fields/0/~0a~1b',
        },
        'get/issue.v2': {
          outputSchema: { type: 'object', required: ['id'], properties: { id: { type: ['integer', 'null'] } } },
          usage: { service: 'tracker-ai', unit: 'credit', units: 1, costUsd: '0' },
        },
      },
      honoursIdempotencyKey: ['create_issue'],
    }),
  ),
  right('overrides of a plugin', plugin({ tools: [entry('acme_a', { functions: { get: { aiLabel: '/a' } } })] })),
  right('128 functions', imageTool({ functions: Object.fromEntries(many(128, (index) => [`f${index}`, {}])) })),
  wrong(
    '129 functions',
    imageTool({ functions: Object.fromEntries(many(129, (index) => [`f${index}`, {}])) }),
    'spec.functions',
  ),
  wrong('override of a pattern', of({}, '*'), 'spec.functions'),
  wrong('override of a name with a space', of({}, 'a b'), 'spec.functions'),
  wrong('a hint of another name', of({ annotations: { readOnly: true } }), `${at}.annotations.readOnly`),
  wrong('a hint as text', of({ annotations: { readOnlyHint: 'true' } }), `${at}.annotations.readOnlyHint`),
  wrong("a hint in the server's place", of({ readOnlyHint: true }), `${at}.readOnlyHint`),
  ...['', '/', 'body', '/a//b', '/a/', '/~2', '/~', '#/body'].map((pointer) =>
    wrong(`label at ${JSON.stringify(pointer)}`, of({ aiLabel: pointer }), `${at}.aiLabel`),
  ),
  wrong('schema that is text', of({ outputSchema: 'object' }), `${at}.outputSchema`),
  wrong('schema of a list', of({ outputSchema: { type: 'array' } }), `${at}.outputSchema.type`),
  wrong('schema of several types', of({ outputSchema: { type: ['object', 'null'] } }), `${at}.outputSchema.type`),
  wrong('schema without a type', of({ outputSchema: { properties: {} } }), `${at}.outputSchema.type`),
  wrong(
    'schema with 65 keywords',
    of({ outputSchema: Object.fromEntries([['type', 'object'], ...many(64, (index) => [`x${index}`, 1])]) }),
    `${at}.outputSchema`,
  ),
  ...['0', '0.015', '123456789.123456'].map((costUsd) =>
    right(`cost ${JSON.stringify(costUsd)}`, costing({ costUsd })),
  ),
  ...['', '.5', '1.', '1e3', '-1', '1,5', '0.0000001', '$1', 1, 0].map((costUsd) =>
    wrong(`cost ${JSON.stringify(costUsd)}`, costing({ costUsd }), `${at}.usage.costUsd`),
  ),
  wrong('units as text', costing({ units: '1' }), `${at}.usage.units`),
  wrong('units below nothing', costing({ units: -1 }), `${at}.usage.units`),
  wrong('usage of no service', costing({ service: undefined }), `${at}.usage.service`),
  wrong('keys of a pattern', imageTool({ honoursIdempotencyKey: ['*'] }), 'spec.honoursIdempotencyKey'),
  wrong('keys of a function twice', imageTool({ honoursIdempotencyKey: ['a', 'a'] }), 'spec.honoursIdempotencyKey'),
  wrong(
    'overrides of a plugin that are refused',
    plugin({ tools: [entry('acme_a', { functions: { get: { aiLabel: 'a' } } })] }),
    'spec.tools[0].functions.get.aiLabel',
  ),
];

const nobody = { serviceAccounts: ['reviewer'] };
const agents: Case[] = [
  right('asks', agent({ ...nobody, onUnknown: 'ask', mayAssertStarter: true, shadow: true })),
  right('fails', agent({ ...nobody, onUnknown: 'fail' })),
  wrong('does something else', agent({ ...nobody, onUnknown: 'retry' }), 'spec.onUnknown'),
  wrong('shadow as text', agent({ ...nobody, shadow: 'true' }), 'spec.shadow'),
];

/** [case 47] */
const unknown: Case[] = [
  wrong('unknown field of a policy', toolPolicy({ kind: {} }), 'spec.kind'),
  wrong('unknown field of a rule', ruled(rule({ if: 'true' })), 'spec.rules[0].if'),
  wrong('unknown field of deciders', decidedBy({ users: ['jane'] }), 'spec.rules[0].deciders.users'),
  wrong('unknown field of a stop', stop({ all: true, tools: [] }), 'spec.tools'),
  wrong('unknown field of an approval', snapshotApproval({ tool: 'a', hash: DIGEST, by: 'jane' }), 'spec.by'),
  wrong('unknown field of a call', toolCall({ result: {} }), 'spec.result'),
  wrong('unknown field of usage', costing({ cost_usd: '0' }), `${at}.usage.cost_usd`),
];

export const DECISIONS: readonly Case[] = [
  ...policies,
  ...stops,
  ...approvals,
  ...calls,
  ...overrides,
  ...agents,
  ...unknown,
];
