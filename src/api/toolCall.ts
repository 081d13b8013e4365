/** ToolCall: a call that waits for a person, or that may have an effect and is therefore written down before it is sent. */
import type { z } from 'zod';
import { FUNCTION_NAME } from './functions.ts';
import { defineKind } from './kind.ts';
import { ID, NAME_MAX } from './name.ts';
import { deciders, LINE, LINE_MESSAGE } from './policyFields.ts';
import { anyObject, choice, flag, integer, list, object, optional, text, withDefault } from './schema.ts';
import { hash } from './snapshotApproval.ts';
import { statusFields } from './status.ts';

export const TOOL_CALL_PHASES = [
  'Waiting',
  'Sending',
  'Succeeded',
  'Failed',
  'Refused',
  'Stopped',
  'Unknown',
  'Expired',
] as const;

export const TOOL_CALL_DECIDERS_MAX = 8;

const time = (description: string) =>
  text({
    description,
    max: 30,
    format: 'date-time',
    pattern: /^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]{1,9})?Z$/,
    patternMessage: 'must be a time in UTC such as 2026-12-01T09:30:00Z',
  });
const uid = (description: string) => text({ description, min: 1, max: 64 });
const user = (description: string) => text({ description, min: 1, max: 512 });

const sender = {
  pod: uid('Uid of the gateway’s pod.'),
  nonce: text({ description: 'Its mark on this write, by which it knows its own.', min: 1, max: 64 }),
  node: text({ description: 'The node of the gateway.', min: 1, max: 253 }),
};

const job = object(
  {
    id: optional(text({ description: 'As the agent named it.', min: 1, max: 256 })),
    startedBy: optional(user('Who started it.')),
    proved: withDefault(flag({ description: 'Whether that is proved, or said by an Agent that may say it.' }), false),
  },
  {
    description: 'The job that the call is a part of.',
    rules: [
      {
        cel: '!self.proved || has(self.startedBy)',
        test: (self) => !self.proved || self.startedBy !== undefined,
        message: 'proved is about startedBy: say who it is',
        field: '.proved',
      },
    ],
  },
);

const decision = object(
  {
    verdict: choice(['approve', 'deny'], { description: 'The verdict.' }),
    by: user('Who decides: the user name by which the API server knows the requester.'),
    uid: uid('`metadata.uid` of this object, so that a copy of it decides nothing.'),
    note: optional(text({ description: 'Why.', min: 1, max: 1024, pattern: LINE, patternMessage: LINE_MESSAGE })),
  },
  { description: 'A person’s decision on a waiting call. Set once, by somebody with the RBAC verb `decide`.' },
);

const answer = object(
  {
    outcome: choice(['happened', 'runAgain', 'stop'], {
      description: 'What a person found: it happened; run it again, with the key of the first time; or leave it.',
    }),
    by: user('Who answers: the user name by which the API server knows the requester.'),
    uid: uid('`metadata.uid` of this object.'),
  },
  { description: 'A person’s answer to an unknown outcome. Set once, by somebody with the RBAC verb `decide`.' },
);

const toolCallSpec = object(
  {
    agent: text({ description: 'Name of the Agent.', min: 1, max: 253 }),
    agentUid: uid('Its uid.'),
    caller: user('The proved caller: the user name of its ServiceAccount.'),
    job: optional(job),
    tool: text({
      description: 'Id of the tool.',
      min: 1,
      max: NAME_MAX,
      pattern: ID,
      patternMessage: 'must be the id of a tool',
    }),
    function: text({
      description: 'The server’s own name of the function.',
      min: 1,
      max: 128,
      pattern: FUNCTION_NAME,
      patternMessage: 'must be the name of a function',
    }),
    arguments: optional(
      anyObject({
        description: 'The exact arguments, where a person must read them; else they are not kept. At most 128 KiB.',
        max: 10_000,
      }),
    ),
    argumentsHash: hash('Of the arguments in canonical form.'),
    definition: hash('Of the function’s approved definition.'),
    policy: hash('Of the rules that decided.'),
    rule: optional(text({ description: 'The rule that made it wait, as `<policy>/<rule>`.', min: 1, max: 320 })),
    because: optional(text({ description: 'Why it waits.', min: 1, max: 512 })),
    labels: optional(
      list(text({ description: 'A label.', min: 1, max: 63 }), {
        description: 'What the job carried along, such as `outside`: it has read text from outside.',
        max: 16,
        merge: 'set',
      }),
    ),
    callId: optional(text({ description: 'The agent’s own id of the call.', min: 1, max: 256 })),
    idempotencyKey: text({ description: 'Sent along on every attempt.', min: 1, max: 128 }),
    sender: optional(object(sender, { description: 'Who made this object in order to send the call at once.' })),
    notAfter: optional(time('Nothing of the first attempt starts later.')),
    toolPod: optional(uid('Uid of the tool’s pod that the first attempt goes to.')),
    deciders: optional(
      list(deciders, {
        description: 'Who may decide: each of these must be met.',
        max: TOOL_CALL_DECIDERS_MAX,
        merge: 'atomic',
      }),
    ),
    expiresAt: time('Undecided, it expires then.'),
    decision: optional(decision),
    answer: optional(answer),
  },
  {
    description: 'The call. Written by gateways; a person adds `decision` or `answer`, and nothing else.',
    rules: [
      {
        cel: 'has(self.sender) == has(self.notAfter)',
        test: (self) => (self.sender === undefined) === (self.notAfter === undefined),
        message: 'goes with sender, and sender with it: a call that is sent at once',
        field: '.notAfter',
      },
      {
        cel: '!has(self.sender) || (!has(self.decision) && !has(self.deciders) && !has(self.arguments))',
        test: (self) =>
          self.sender === undefined ||
          (self.decision === undefined && self.deciders === undefined && self.arguments === undefined),
        message: 'a call that is sent at once waits for nobody: no arguments, deciders or decision',
        field: '.sender',
      },
      {
        cel: "!has(self.answer) || !has(self.decision) || self.decision.verdict == 'approve'",
        test: (self) => self.answer === undefined || self.decision === undefined || self.decision.verdict === 'approve',
        message: 'a call that was denied has no outcome to answer for',
        field: '.answer',
      },
    ],
  },
);

const toolCallStatus = object(
  {
    ...statusFields,
    phase: optional(
      choice(TOOL_CALL_PHASES, {
        description:
          'Waiting for a person; Sending; Succeeded (the tool answered); Failed (it answered with an error, or nothing was made); Refused; Stopped; Unknown: nobody knows whether it took effect; Expired.',
      }),
    ),
    reason: optional(text({ description: 'Why, as a word for programs.', max: 128 })),
    message: optional(text({ description: 'Why, for people.', max: 1024 })),
    attempts: optional(integer({ description: 'Number of the last attempt to send it.', min: 0, max: 1_000 })),
    again: optional(flag({ description: 'Whether that attempt was made on the answer `runAgain`.' })),
    claim: optional(
      object(
        { ...sender, notAfter: time('Nothing of this attempt starts later.') },
        { description: 'The gateway that sends it.' },
      ),
    ),
    toolPod: optional(uid('Uid of the tool’s pod that it was sent to.')),
    node: optional(text({ description: 'The node of that pod.', min: 1, max: 253 })),
    startedAt: optional(time('When the last attempt began.')),
    endedAt: optional(time('When its outcome was known.')),
  },
  { description: 'What became of it; written by gateways only.' },
);

export const toolCall = defineKind('ToolCall', {
  plural: 'toolcalls',
  singular: 'toolcall',
  shortNames: ['ozcall'],
  description:
    'A call of a function that is not safe to repeat: on record before it is sent, or waiting for a person. Its result is never in it.',
  spec: toolCallSpec,
  status: toolCallStatus,
  selectable: ['.status.phase'],
  columns: [
    { name: 'Phase', type: 'string', path: '.status.phase', description: 'What became of it' },
    { name: 'Tool', type: 'string', path: '.spec.tool', description: 'Id of the tool' },
    { name: 'Function', type: 'string', path: '.spec.function', description: 'The function' },
    { name: 'Agent', type: 'string', path: '.spec.agent', description: 'The agent' },
    { name: 'Decided', type: 'string', path: '.spec.decision.verdict', description: 'The decision' },
    { name: 'Age', type: 'date', path: '.metadata.creationTimestamp', description: 'Time since it was made' },
    { name: 'Caller', type: 'string', path: '.spec.caller', description: 'Who calls', wide: true },
    { name: 'Because', type: 'string', path: '.spec.because', description: 'Why it waits', wide: true },
    { name: 'Groups', type: 'string', path: '.spec.deciders[*].groups', description: 'Who may decide', wide: true },
    { name: 'Roles', type: 'string', path: '.spec.deciders[*].roles', description: 'Who may decide', wide: true },
    { name: 'Expires', type: 'string', path: '.spec.expiresAt', description: 'Undecided, it expires then', wide: true },
    { name: 'Reason', type: 'string', path: '.status.reason', description: 'Why', wide: true },
  ],
});

export type ToolCall = z.output<typeof toolCall.schema>;
export type ToolCallSpec = z.output<typeof toolCallSpec>;
export type ToolCallStatus = z.output<typeof toolCallStatus>;
export type ToolCallPhase = (typeof TOOL_CALL_PHASES)[number];
