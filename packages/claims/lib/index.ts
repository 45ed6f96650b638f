// @numalign/claims: a machine as devices of Kubernetes' Dynamic Resource Allocation, and what claims
// would get of them.
export {
  type Allocated,
  type Allocation,
  allocate,
  NOTHING_TAKEN,
  type NoAllocation,
  type Taken,
} from './claims/allocation.js';
export {
  CLAIM_KINDS,
  type Claim,
  claimOf,
  type DeviceClass,
  deviceClassOf,
  OWN_CLASSES,
} from './claims/objects.js';
export {
  baseRequest,
  type ClaimConfig,
  type ClaimParameters,
  PARAMETERS_KIND,
  parametersOf,
  parametersVersions,
  REQUEST_OPTIONS,
} from './claims/parameters.js';
export {
  type ClaimPart,
  type DeviceResult,
  type PartRequest,
  type PlacementInEffect,
  partsOf,
  requestFor,
  UNIT,
} from './claims/parts.js';
export {
  type AttributeValue,
  type Capacity,
  capacityName,
  DEVICE_UNITS,
  type Device,
  type DeviceIdentity,
  type DeviceKind,
  type DeviceMachine,
  type DeviceUnit,
  DRIVER,
  deviceNamed,
  devicesOf,
  memoryType,
  type PcieRoot,
} from './devices/devices.js';
export { type MachineNow, machineNow } from './devices/machine.js';
