// numalign/topology: machines, topology hints and their merge, devices, and hint providers for your
// own resources.

export type {
  PreferredAllocation,
  PreferredAllocationRequest,
} from '../decision/devices/device-resources.js';
export type {
  HintProvider,
  HintRequest,
  NodeAmount,
  ReleaseRequest,
} from '../decision/hints/hint-provider.js';
export {
  type MergeOptions,
  type MergeResult,
  mergeHints,
  type NodeChoice,
  type ProviderHints,
} from '../decision/hints/merge-hints.js';
export {
  type DevicePattern,
  type DeviceSelection,
  type DeviceSpec,
  type DeviceTexts,
  selectDevices,
} from '../input/devices.js';
export { type DiscoverOptions, discover } from '../machine/discovery.js';
export { HintFamily, type TopologyHint } from '../machine/hints.js';
export type {
  BestFitOptions,
  CpuGroup,
  CpuHintsOptions,
  CpuLocation,
  MachineJson,
  NumaNode,
  PciDevice,
  PciDeviceKind,
} from '../machine/machine-description.js';
export { Topology } from '../machine/topology.js';
