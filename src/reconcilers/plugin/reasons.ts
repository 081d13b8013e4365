/** Reasons in the conditions of a Plugin, each with what a person can do. */

/** Nothing to do. */
export const ACCEPTED = 'Accepted';
/** Names with `oz0-` are for plugins that the cluster admin lists as reviewed. Choose another name. */
export const RESERVED_NAME = 'ReservedName';
/** A tool id is another's in this namespace: a Tool's, or that of a Plugin that was there before. Rename the tool, or remove the other. */
export const TOOL_ID_TAKEN = 'ToolIdTaken';
/** A Connection of this name is another's in this namespace. Rename the one in the Plugin, or remove the other. */
export const CONNECTION_TAKEN = 'ConnectionTaken';
/** A Connection of the Plugin is for a tool that the Plugin does not bring. Such a Connection stands by itself. */
export const FOREIGN_TOOL = 'ForeignTool';
/** The Plugin was not accepted, so the rest is not judged. See the condition Accepted. */
export const NOT_ACCEPTED = 'NotAccepted';

/** All its Tools take calls. */
export const INSTALLED = 'Installed';
/** Wait: Tools are being made or started; the message names them. */
export const TOOLS_STARTING = 'ToolsStarting';
/** A Tool does not work; the message names it and says why. See that Tool. */
export const TOOL_FAILING = 'ToolFailing';
