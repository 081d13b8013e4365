/** Reasons in the conditions of a Tool, each with what a person can do. */

/** Nothing to do. */
export const ACCEPTED = 'Accepted';
/** This version does not run packages yet: use `image`, a plugin's `mcp`, or `url`. */
export const SOURCE_NOT_SUPPORTED = 'SourceNotSupported';
/** The Plugin that this Tool names is not there. It is deleted with its Plugin; a Tool by itself names none. */
export const PLUGIN_MISSING = 'PluginMissing';
/** The Tool names a Plugin that does not own it. Delete it; the Plugin makes its own. */
export const PLUGIN_NOT_OWNER = 'PluginNotOwner';
/** The Plugin states no image for a tool that runs in it. State `spec.source` there. */
export const PLUGIN_WITHOUT_IMAGE = 'PluginWithoutImage';
/** The cluster has no model gateway. A cluster admin sets `model.url` of the chart; or leave `usesModel` out. */
export const NO_MODEL_GATEWAY = 'NoModelGateway';
/** `url` takes its host from a parameter of a Connection, and Connections of this version have none. Write the host itself. */
export const PARAMETER_MISSING = 'ParameterMissing';
/** Command, arguments, environment, headers and bindings together are longer than a process can be given: shorten them. */
export const CONFIGURATION_TOO_LARGE = 'ConfigurationTooLarge';
/** The Tool was not accepted, so the rest is not judged. See the condition Accepted. */
export const NOT_ACCEPTED = 'NotAccepted';

/** All pods run as written. */
export const ROLLED_OUT = 'RolledOut';
/** Wait: the workload is being made. */
export const INSTALLING = 'Installing';
/** Wait: pods are being started or replaced; the message says how far it is. */
export const ROLLING_OUT = 'RollingOut';
/** Wait for the operator's edge to publish its CA; look at the operator's pods if it takes long. */
export const WAITING_FOR_TRUST = 'WaitingForTrust';
/** Something else made a ConfigMap named `oz0` in this namespace. Delete it; the operator makes its own. */
export const TRUST_FOREIGN = 'TrustForeign';
/** No node may run it: look at nodeSelector, tolerations, and the nodes' labels and taints. */
export const NO_ELIGIBLE_NODE = 'NoEligibleNode';
/** The scheduler finds no node for a pod; the message is its own. Look at requests, nodeSelector, tolerations. */
export const UNSCHEDULABLE = 'Unschedulable';
/** The image cannot be pulled: look at its reference and at pullSecrets. */
export const IMAGE_UNAVAILABLE = 'ImageUnavailable';
/** The API server refuses the pods, such as for a quota; the message is its own. */
export const PODS_REFUSED = 'PodsRefused';
/** A container cannot be started; the message is the kubelet's. */
export const CANNOT_START = 'CannotStart';
/** A container ends again and again; the message says how. Look at its log. */
export const CRASHING = 'Crashing';
/** The pod was ended by its node, such as for want of disk; the message is the kubelet's. */
export const EVICTED = 'Evicted';
/** The tool's process does not come up or ends; the message has its exit code and last words. Look at its command. */
export const SERVER_FAILS = 'ServerFails';

/** From inside a pod nothing was reached that should be closed. */
export const SANDBOX_HOLDS = 'SandboxHolds';
/** Wait: no sidecar has reported yet. */
export const SANDBOX_NOT_SEEN = 'SandboxNotSeen';
/** From inside a pod, addresses answered that must not. Look at whether the cluster's network enforces NetworkPolicies. */
export const SANDBOX_OPEN = 'SandboxOpen';
/** Another NetworkPolicy of this namespace allows more to tool pods. Exclude pods with the label oz0.ai/tool from it. */
export const WIDENED_BY_POLICY = 'WidenedByPolicy';

/** The server listed its functions. */
export const LISTED = 'Listed';
/** Wait: no pod takes calls yet. See the condition Installed. */
export const NO_READY_POD = 'NoReadyPod';
/** Wait: a pod is being asked. */
export const ASKING = 'Asking';
/** The controller does not reach the pod's sidecar; the message says how that failed. It is asked again. */
export const SIDECAR_UNREACHABLE = 'SidecarUnreachable';
/** The server lists no function at all. Look at its configuration. */
export const NOTHING_LISTED = 'NothingListed';

/** The pods have every credential, and a remote server answers. */
export const CONNECTED = 'Connected';
/** Nothing to do: the Tool has no secret, no Connection and no remote server. */
export const NOTHING_TO_CONNECT = 'NothingToConnect';
/** Wait: pods with these credentials are being made or asked. */
export const CONNECTING = 'Connecting';
/** A Secret, or a key of it, is not there. Create it; the pods find it by themselves within a minute or two. */
export const SECRET_MISSING = 'SecretMissing';
/** A key of a Secret holds nothing. Put the value in. */
export const SECRET_EMPTY = 'SecretEmpty';
/** What a key of a Secret holds cannot be sent: one line of visible ASCII can. Correct the value. */
export const SECRET_MALFORMED = 'SecretMalformed';
/** The remote server is not reached or does not answer; the message says how. Look at `url`, `headers` and their secrets. */
export const SERVER_UNREACHABLE = 'ServerUnreachable';

/** The server lists what was approved. */
export const SNAPSHOT_CURRENT = 'SnapshotCurrent';
/** Wait: the first listing becomes the snapshot. */
export const NO_SNAPSHOT_YET = 'NoSnapshotYet';
/** The server lists something else than its snapshot. Read `status.pending`, and approve its hash with a SnapshotApproval if it is right. */
export const LISTING_CHANGED = 'ListingChanged';
/** Wait: a pod of the new version is asked what it lists before anything is rolled out. */
export const PROBING = 'Probing';
/** The new version lists something else. Read `status.pending`, and approve its hash with a SnapshotApproval if it is right. */
export const NEW_VERSION_WAITS = 'NewVersionWaits';
/** The pod of the new version does not come up; the message says why. Correct the Tool, or go back. */
export const NEW_VERSION_FAILS = 'NewVersionFails';
