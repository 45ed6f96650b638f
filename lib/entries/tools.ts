// numalign/tools: the names, rules and words of numalign, for programs that take requests from people
// or files, such as its command line.

export { Backoff, type Pauses } from '../base/notices/backoff.js';
export { parseProcStat } from '../base/text/proc-stat.js';
export { findHierarchy, type Hierarchy, neededHierarchy } from '../cgroups/files/hierarchies.js';
export { cgroupFolder, ownLimits } from '../cgroups/limits.js';
export { cpusOfGrants } from '../decision/grant-info.js';
