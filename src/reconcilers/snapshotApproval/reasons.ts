/** Reasons in the conditions of a SnapshotApproval, each with what a person can do. */

/** Nothing to do. */
export const ACCEPTED = 'Accepted';
/** Its hash is the tool's snapshot. */
export const CURRENT = 'Current';
/** Nothing to do: the tool does not list this now, and once it does, that is approved. */
export const PENDING = 'Pending';
/** Nothing to do: the tool has another snapshot by now. Delete it where the tool may not go back to it by itself. */
export const SUPERSEDED = 'Superseded';
