/** What the controller tells a sidecar, and what a sidecar says of itself. Types only; nothing here is secret. */

/** JSON of the sidecar's environment variable `OZ0_SIDECAR`; a part of the pod template, so a change rolls out. */
export interface SidecarConfig {
  readonly namespace: string;
  readonly tool: string;
  /** Command and arguments of the tool's process, as written on the Tool or Plugin; empty with `remote`. */
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** A call's longest duration. */
  readonly timeoutMs: number;
  /** Calls that may run at once; a further one is refused as busy. */
  readonly concurrency: number;
  /** Largest message to or from the tool, in bytes. */
  readonly maxMessageBytes: number;
  /** Secrets of the tool: the value of a bound one stays in the sidecar, another is an environment variable of that name. */
  readonly secrets?: readonly SecretFile[];
  readonly bindings?: readonly SecretBinding[];
  /** What the tool may reach, as its object says; egress has the same list, and decides. */
  readonly hosts?: readonly string[];
  /** The tool asks the cluster's model gateway, by way of egress. */
  readonly usesModel?: boolean;
  /** A server elsewhere instead of a process. */
  readonly remote?: RemoteServer;
}

export interface RemoteServer {
  readonly url: string;
  /** With `${NAME}` for the secret of that name. */
  readonly headers: Readonly<Record<string, string>>;
}

/** A key of a Secret that the kubelet mounts into the sidecar, and nowhere else. */
export interface SecretFile {
  readonly name: string;
  /** Below `/oz0/secrets`. */
  readonly file: string;
}

/** Where a secret's value is put, and nowhere else. */
export interface SecretBinding {
  /** Name of one of `secrets`. */
  readonly secret: string;
  /** Exact host name in A-label form. */
  readonly host: string;
  readonly port: number;
  readonly in: 'header' | 'query';
  /** Header or query parameter. */
  readonly name: string;
  /** Holds `${value}` once, such as `Bearer ${value}`. */
  readonly format: string;
  /** Whether a WebSocket may be opened to this host; its messages are not read. */
  readonly websocket: boolean;
}

export type SecretProblem = 'missing' | 'empty' | 'malformed';

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
  /** What is wrong with secrets now; while there is something, no process of the tool is started. */
  readonly secrets?: { readonly problems: readonly { readonly name: string; readonly problem: SecretProblem }[] };
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
