/** Reasons in the conditions of a Stop, each with what a person can do. */

/** Calls are stopped as long as this object exists. Delete it to let them go on. */
export const IN_FORCE = 'InForce';
/** What it names is not there; should it come, it is stopped. Look at the name. */
export const NOT_THERE = 'NotThere';
/** A Stop of the whole cluster counts in the operator's namespace only: make it there. */
export const NOT_HERE = 'NotHere';
