/** Reads a sidecar's answer. The sidecar is ours, but what it repeats comes from a server that may be hostile. */
import type {
  FunctionKind,
  ListedFunction,
  SandboxReport,
  SecretProblem,
  SidecarStatus,
} from '../../domain/config/sidecar.ts';
import { at, isRecord, recordsAt, textAt } from '../live.ts';

const PHASES: readonly SidecarStatus['phase'][] = ['Starting', 'Ready', 'Draining', 'Down'];
const PROBLEMS: readonly SecretProblem[] = ['missing', 'empty', 'malformed'];
const KINDS: readonly FunctionKind[] = ['ReadOnly', 'Additive', 'Destructive', 'Undeclared'];

/** The status, or undefined for whatever does not have its form. */
export function readSidecarStatus(answer: unknown): SidecarStatus | undefined {
  const phase = PHASES.find((name) => name === textAt(answer, 'phase'));
  const podUid = textAt(answer, 'podUid');
  const sandbox = readSandbox(at(answer, 'sandbox'));
  if (phase === undefined || podUid === undefined || sandbox === undefined) return undefined;
  const listing = at(answer, 'listing');
  const read = listing === undefined ? undefined : readListing(listing);
  if (listing !== undefined && read === undefined) return undefined;
  const problem = textAt(answer, 'problem');
  return {
    podUid,
    phase,
    ...(problem === undefined ? {} : { problem }),
    process: readProcess(at(answer, 'process')),
    sandbox,
    ...(isRecord(at(answer, 'secrets')) ? { secrets: readSecrets(answer) } : {}),
    ...(read === undefined ? {} : { listing: read }),
  };
}

function readProcess(value: unknown): SidecarStatus['process'] {
  const starts = at(value, 'starts');
  const lastExit = textAt(value, 'lastExit');
  return { starts: typeof starts === 'number' ? starts : 0, ...(lastExit === undefined ? {} : { lastExit }) };
}

function readSecrets(answer: unknown): NonNullable<SidecarStatus['secrets']> {
  const problems = recordsAt(answer, 'secrets', 'problems').flatMap((item) => {
    const name = textAt(item, 'name');
    const problem = PROBLEMS.find((known) => known === textAt(item, 'problem'));
    return name === undefined || problem === undefined ? [] : [{ name, problem }];
  });
  return { problems };
}

function readSandbox(value: unknown): SandboxReport | undefined {
  if (!isRecord(value) || typeof value['holds'] !== 'boolean') return undefined;
  const { holds, open, userNamespace, pidsLimit } = value;
  return {
    holds,
    open: Array.isArray(open) ? open.filter((address) => typeof address === 'string') : [],
    userNamespace: typeof userNamespace === 'boolean' ? userNamespace : 'unknown',
    pidsLimit: typeof pidsLimit === 'number' || pidsLimit === 'none' ? pidsLimit : 'unknown',
  };
}

function readListing(value: unknown): SidecarStatus['listing'] {
  const hash = textAt(value, 'hash');
  const functions = at(value, 'functions');
  if (hash === undefined || !Array.isArray(functions)) return undefined;
  const read = functions.map(readFunction).filter((item) => item !== undefined);
  return read.length === functions.length ? { hash, functions: read } : undefined;
}

function readFunction(value: unknown): ListedFunction | undefined {
  const name = textAt(value, 'name');
  const kind = KINDS.find((known) => known === textAt(value, 'kind'));
  const hash = textAt(value, 'hash');
  return name === undefined || kind === undefined || hash === undefined ? undefined : { name, kind, hash };
}
