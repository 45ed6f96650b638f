// The kubelet whose decisions numalign follows: its version, the feature gates that matter here, and
// the names of its state files.

/** The file's name in the kubelet's folder. */
export const CPU_MANAGER_STATE = 'cpu_manager_state';

/** The file name of the Memory Manager's state. */
export const MEMORY_MANAGER_STATE = 'memory_manager_state';

/** The releases of the kubelet that numalign can follow. */
export const KUBELET_VERSIONS = ['v1.32', 'v1.36', 'v1.37'] as const;

/** The releases of the kubelet whose decisions numalign can follow. See docs/differences.md. */
export type KubeletVersion = (typeof KUBELET_VERSIONS)[number];

/** The names of the feature gates that matter here. */
export const FEATURE_GATES = [
  'PodLevelResources',
  'PodLevelResourceManagers',
  'DRAExtendedResource',
] as const;

/**
 * Feature gates by the kubelet's names. `PodLevelResources`: a pod may have resources as a whole.
 * `PodLevelResourceManagers`: such a pod can get exclusive CPUs. `DRAExtendedResource`: a DRA
 * driver can give out devices that a container asks for by resource name.
 */
export type FeatureGates = Readonly<Record<(typeof FEATURE_GATES)[number], boolean>>;

/** The release that new states follow. */
export const DEFAULT_VERSION: KubeletVersion = 'v1.37';

/** The version of a state that names none: older releases of numalign supported no other. */
export const UNSAID_VERSION: KubeletVersion = 'v1.32';

/** The feature gates of each release without a choice. */
export const DEFAULT_GATES: Readonly<Record<KubeletVersion, FeatureGates>> = {
  'v1.32': Object.freeze({
    PodLevelResources: false,
    PodLevelResourceManagers: false,
    DRAExtendedResource: false,
  }),
  'v1.36': Object.freeze({
    PodLevelResources: true,
    PodLevelResourceManagers: false,
    DRAExtendedResource: true,
  }),
  'v1.37': Object.freeze({
    PodLevelResources: true,
    PodLevelResourceManagers: false,
    DRAExtendedResource: true,
  }),
};

/** True if `version` is `since` or a later one. */
export const isSince = (version: KubeletVersion, since: KubeletVersion): boolean =>
  KUBELET_VERSIONS.indexOf(version) >= KUBELET_VERSIONS.indexOf(since);
