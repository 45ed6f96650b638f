// The entry numalign as it is built: the values of index.ts, which has their types. Managers and
// grants are loaded when the first manager opens.
import { late } from '../managers/late-classes.js';

export { AdmissionError } from '../admission/admission-error.js';
export { NumalignError } from '../base/errors.js';
export { threadCounts } from '../children/thread-counts.js';
export { MACHINE_STATE_DIR } from '../input/values/machine-folder.js';
export { pinThread } from '../machine/affinity.js';
export { CpuSet, NodeSet } from '../machine/cpu-set.js';
export { openManager } from '../opening/open-manager.js';
export { pin } from '../opening/pin.js';
export { supported } from '../supported.js';
export const { Grant, GrantPart, Manager, ManagerView, Pod } = late;
