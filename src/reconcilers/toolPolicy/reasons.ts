/** Reasons in the conditions of a ToolPolicy or ClusterToolPolicy, each with what a person can do. */

/** All of it can be judged. */
export const ACCEPTED = 'Accepted';
/** Rules cannot be judged, and so refuse all that their `functions` name; the message has each with its problem. Correct them. */
export const RULES_BROKEN = 'RulesBroken';
