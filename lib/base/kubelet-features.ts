// The kubelet whose decisions numalign follows: its version, and the feature gates that matter
// here.

export const KUBELET_VERSIONS = ['v1.32', 'v1.36'] as const;

/** The kubelet whose resource managers decide. */
export type KubeletVersion = (typeof KUBELET_VERSIONS)[number];

export const FEATURE_GATES = [
  'PodLevelResources',
  'PodLevelResourceManagers',
  'DRAExtendedResource',
] as const;

/** Feature gates by the kubelet's names. */
export type FeatureGates = Readonly<Record<(typeof FEATURE_GATES)[number], boolean>>;

export const DEFAULT_VERSION: KubeletVersion = 'v1.36';

/** The version of a state that names none: older releases of numalign supported no other. */
export const UNSAID_VERSION: KubeletVersion = 'v1.32';

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
};
