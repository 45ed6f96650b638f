// What the package exports.
export {
  affinity,
  type MovedThread,
  type PinOptions,
  type PinResult,
  pin,
  pinThread,
  type ThreadInfo,
  type Threads,
  threadId,
  threads,
  type UnmovableThread,
} from './affinity.js';
export { type CpuManagerPolicyOptions, MACHINE_STATE_DIR, type MachineOptions, type ManagerOptions } from './config.js';
export { CpuSet, NodeSet } from './cpu-set.js';
export { type ErrorCode, type ErrorDetails, NumalignError } from './errors.js';
export { Grant, type GrantPinOptions } from './grant.js';
export { type GrantInfo, Manager, openManager, type Settings } from './manager.js';
export { NodeMask } from './node-mask.js';
export type { AcquireOptions } from './request.js';
export type { EnforcementLevel } from './state/assignments.js';
export {
  type BestFitOptions,
  type CpuGroup,
  type CpuLocation,
  type DiscoverOptions,
  discover,
  type MachineJson,
  type NumaNode,
  Topology,
} from './topology.js';
