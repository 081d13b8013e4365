/** What the controller tells a sidecar, and what a sidecar says of itself. Types only; nothing here is secret. */

/** JSON of the sidecar's environment variable `OZ0_SIDECAR`; a part of the pod template, so a change rolls out. */
export interface SidecarConfig {
  readonly namespace: string;
  readonly tool: string;
  /** Command and arguments of the tool's process, as written on the Tool or Plugin. */
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** A call's longest duration. */
  readonly timeoutMs: number;
  /** Calls that may run at once; a further one is refused as busy. */
  readonly concurrency: number;
  /** Largest message to or from the tool, in bytes. */
  readonly maxMessageBytes: number;
}

export type FunctionKind = 'ReadOnly' | 'Additive' | 'Destructive' | 'Undeclared';

export interface ListedFunction {
  readonly name: string;
  readonly kind: FunctionKind;
  readonly hash: string;
}

/** Answer of `GET /status`. */
export interface SidecarStatus {
  readonly podUid: string;
  readonly phase: 'Starting' | 'Ready' | 'Draining' | 'Down';
  /** Why it is not ready, for a person: a crash's exit code and last lines of stderr (bounded, control characters escaped). */
  readonly problem?: string;
  readonly process: { readonly starts: number; readonly lastExit?: string };
  readonly sandbox: SandboxReport;
  readonly server?: { readonly name: string; readonly version: string; readonly protocolVersion: string };
  readonly listing?: { readonly hash: string; readonly functions: readonly ListedFunction[] };
}

/** Which walls of the sandbox were seen to hold, from inside the pod. */
export interface SandboxReport {
  readonly holds: boolean;
  /** Addresses that should not answer, and did. */
  readonly open: readonly string[];
  readonly userNamespace: boolean | 'unknown';
  /** The cgroup's limit on processes, or none. */
  readonly pidsLimit: number | 'none' | 'unknown';
}
