/** Reasons in the conditions of an Agent, each with what a person can do. */

/** Nothing to do. */
export const ACCEPTED = 'Accepted';

/** Every grant names something that works. */
export const RESOLVED = 'Resolved';
/** Nothing to do: the Agent may call nothing. */
export const NOTHING_GRANTED = 'NothingGranted';
/** Grants name tools that are not in this namespace; the others work. Correct the ids, or install the tools. */
export const UNKNOWN_TOOL = 'UnknownTool';
/** Grants name functions that their tools do not list; the others work. Correct the names. */
export const UNKNOWN_FUNCTION = 'UnknownFunction';
/** A granted tool does not work. See that Tool. */
export const TOOL_FAILING = 'ToolFailing';
/** Wait: granted tools are starting. */
export const TOOLS_STARTING = 'ToolsStarting';
