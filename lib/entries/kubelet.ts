// numalign/kubelet: the names, policies, manifests and state files of the kubelet.

export type { KubeletPod } from '../account/kubelet-record.js';
export type { AdmitAllOptions } from '../admission/grants/admit-all.js';
export type { AdoptedPod, AdoptOptions } from '../adoption/adoption-request.js';
export type { FeatureGates, KubeletVersion } from '../base/kubelet-features.js';
export { CPU_MANAGER_STATE, MEMORY_MANAGER_STATE } from '../base/kubelet-features.js';
export type { QosClass } from '../input/pods/pod-resources.js';
export type { PlainPod, PodManifest, ResourceRequirements } from '../input/pods/pod-spec.js';
export { podsOf } from '../input/pods/workload.js';
export type {
  CpuManagerPolicy,
  MemoryManagerPolicy,
  TopologyManagerPolicy,
  TopologyManagerScope,
} from '../input/policies.js';
export type { CpuManagerPolicyOptions, TopologyManagerPolicyOptions } from '../input/policy-options.js';
export {
  type CpuManagerFormatOptions,
  type CpuManagerState,
  formatCpuManagerState,
  parseCpuManagerState,
} from '../kubelet/cpu-manager-state.js';
export type { KubeletFormatOptions, KubeletWriteOptions } from '../kubelet/kubelet-format.js';
export type { KubeletImportOptions } from '../kubelet/kubelet-import.js';
export type { KubeletFiles } from '../kubelet/kubelet-states.js';
export {
  formatMemoryManagerState,
  type KubeletMemoryBlock,
  type KubeletMemoryTable,
  type KubeletNumaNode,
  type MemoryManagerState,
  parseMemoryManagerState,
} from '../kubelet/memory-manager-state.js';
export type { KubeletPodHoldings } from '../kubelet/record/kubelet-holdings.js';
export type { KubeletStatus } from '../kubelet/record/kubelet-status.js';
export type { RecordKubeletOptions } from '../kubelet/record/record-kubelet.js';
export type { KubeletImport } from '../managers/manager.js';
