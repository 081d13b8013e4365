/** Reasons in the conditions of a Connection, each with what a person can do. */

/** Nothing to do. */
export const ACCEPTED = 'Accepted';
/** It names tools that are not in this namespace; the others have it. Correct the ids, or install the tools. */
export const UNKNOWN_TOOL = 'UnknownTool';
/** A place in the requests to a host is bound to another secret: by the Tool, or by a Connection that was there before. Remove one of them. */
export const BINDING_TAKEN = 'BindingTaken';

/** The pods of every tool have the credential. */
export const CONNECTED = 'Connected';
/** Wait: pods with the credential are being made or asked; the message names their tools. */
export const CONNECTING = 'Connecting';
/** No tool has it. See the condition Accepted. */
export const NOT_ACCEPTED = 'NotAccepted';
