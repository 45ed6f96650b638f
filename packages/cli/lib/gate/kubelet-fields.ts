// The fields of a KubeletConfiguration, kubelet.config.k8s.io/v1beta1, and their values.

/** The words between blanks and line feeds. */
export const words = (text: string): readonly string[] => text.trim().split(/\s+/);

/** The type of a field: a kubelet does not start with a value of another one. */
export interface FieldType {
  /** In words. */
  readonly valid: string;
  readonly is: (value: unknown) => boolean;
}

const isObject = (value: unknown) => typeof value === 'object' && value !== null && !Array.isArray(value);
const isText = (value: unknown) => typeof value === 'string';

const TEXT: FieldType = { valid: 'a text', is: isText };
const NUMBER: FieldType = { valid: 'a whole number', is: Number.isSafeInteger };
const FLAG: FieldType = { valid: 'true or false', is: (value) => typeof value === 'boolean' };
const LIST: FieldType = { valid: 'a list', is: Array.isArray };
const OBJECT: FieldType = { valid: 'an object', is: isObject };
const DURATION: FieldType = {
  valid: 'a duration such as "10s"',
  is: (value) => isText(value) && /^[-+]?(0|((\d+\.?\d*|\.\d+)(ns|us|µs|ms|s|m|h))+)$/.test(value as string),
};
/** The type of each value in such a map. */
export const MAP_VALUE: FieldType = { valid: 'a text, in quotation marks if YAML reads another', is: isText };

const MAPS = words(`
  cpuManagerPolicyOptions defaultPodSysctls evictionHard evictionMinimumReclaim evictionSoft
  evictionSoftGracePeriod kubeReserved qosReserved systemReserved topologyManagerPolicyOptions`);

const TYPES: readonly (readonly [FieldType, readonly string[]])[] = [
  [OBJECT, MAPS],
  [
    TEXT,
    words(`
  address apiVersion cgroupDriver cgroupRoot clusterDomain configMapAndSecretChangeDetectionStrategy
  containerLogMaxSize containerRuntimeEndpoint contentType cpuManagerPolicy hairpinMode healthzBindAddress
  imagePullCredentialsVerificationPolicy imageServiceEndpoint kind kubeReservedCgroup kubeletCgroups
  memoryManagerPolicy memoryReservationPolicy podCIDR podLogsDir providerID reservedSystemCPUs resolvConf
  showHiddenMetricsForVersion staticPodPath staticPodURL systemCgroups systemReservedCgroup tlsCertFile
  tlsMinVersion tlsPrivateKeyFile topologyManagerPolicy topologyManagerScope volumePluginDir`),
  ],
  [
    DURATION,
    words(`
  containerLogMonitorInterval cpuCFSQuotaPeriod cpuManagerReconcilePeriod draManagerReconcilePeriod
  evictionPressureTransitionPeriod fileCheckFrequency httpCheckFrequency imageMaximumGCAge imageMinimumGCAge
  nodeStatusReportFrequency nodeStatusUpdateFrequency podHousekeepingPeriod runtimeRequestTimeout
  shutdownGracePeriod shutdownGracePeriodCriticalPods streamingConnectionIdleTimeout syncFrequency
  volumeStatsAggPeriod`),
  ],
  [
    NUMBER,
    words(`
  containerLogMaxFiles containerLogMaxWorkers eventBurst eventRecordQPS evictionMaxPodGracePeriod healthzPort
  imageGCHighThresholdPercent imageGCLowThresholdPercent iptablesDropBit iptablesMasqueradeBit kubeAPIBurst
  kubeAPIQPS maxOpenFiles maxParallelImagePulls maxPods nodeLeaseDurationSeconds nodeStatusMaxImages
  oomScoreAdj podPidsLimit podsPerCore port readOnlyPort registryBurst registryPullQPS`),
  ],
  [{ valid: 'a number', is: Number.isFinite }, ['memoryThrottlingFactor']],
  [
    FLAG,
    words(`
  cgroupsPerQOS cpuCFSQuota enableContentionProfiling enableControllerAttachDetach enableDebugFlagsHandler
  enableDebuggingHandlers enableProfilingHandler enableServer enableSystemLogHandler enableSystemLogQuery
  failCgroupV1 failSwapOn kernelMemcgNotification localStorageCapacityIsolation makeIPTablesUtilChains
  mergeDefaultEvictionSettings protectKernelDefaults registerNode rotateCertificates runOnce seccompDefault
  serializeImagePulls serverTLSBootstrap singleProcessOOMKill`),
  ],
  [
    LIST,
    words(`
  allowedUnsafeSysctls clusterDNS enforceNodeAllocatable preloadedImagesVerificationAllowlist registerWithTaints
  reservedMemory shutdownGracePeriodByPodPriority tlsCipherSuites tlsCurvePreferences`),
  ],
  [
    OBJECT,
    words(`
  authentication authorization crashLoopBackOff featureGates logging memorySwap staticPodURLHeader tracing
  userNamespaces`),
  ],
];

/** The types of all fields. */
export const FIELD_TYPES: ReadonlyMap<string, FieldType> = new Map(
  TYPES.flatMap(([type, names]) => names.map((name) => [name, type] as const)),
);

/** The fields that are maps of texts. */
export const TEXT_MAPS: readonly string[] = MAPS;

/** The least and the greatest value that a kubelet accepts. */
export const RANGES: Readonly<Record<string, readonly [number, number]>> = {
  containerLogMaxFiles: [2, Number.POSITIVE_INFINITY],
  containerLogMaxWorkers: [1, Number.POSITIVE_INFINITY],
  eventBurst: [0, Number.POSITIVE_INFINITY],
  eventRecordQPS: [0, Number.POSITIVE_INFINITY],
  healthzPort: [0, 65535],
  imageGCHighThresholdPercent: [0, 100],
  imageGCLowThresholdPercent: [0, 100],
  iptablesDropBit: [0, 31],
  iptablesMasqueradeBit: [0, 31],
  kubeAPIBurst: [0, Number.POSITIVE_INFINITY],
  kubeAPIQPS: [0, Number.POSITIVE_INFINITY],
  maxOpenFiles: [0, Number.POSITIVE_INFINITY],
  maxParallelImagePulls: [1, Number.POSITIVE_INFINITY],
  maxPods: [0, Number.POSITIVE_INFINITY],
  memoryThrottlingFactor: [Number.MIN_VALUE, 1],
  nodeLeaseDurationSeconds: [0, Number.POSITIVE_INFINITY],
  nodeStatusMaxImages: [-1, Number.POSITIVE_INFINITY],
  oomScoreAdj: [-1000, 1000],
  podsPerCore: [0, Number.POSITIVE_INFINITY],
  port: [0, 65535],
  readOnlyPort: [0, 65535],
  registryBurst: [0, Number.POSITIVE_INFINITY],
  registryPullQPS: [0, Number.POSITIVE_INFINITY],
};

/** The values of fields that are words; an empty text is the default. */
export const CHOICES: Readonly<Record<string, readonly string[]>> = {
  cpuManagerPolicy: ['none', 'static'],
  hairpinMode: ['hairpin-veth', 'promiscuous-bridge', 'none'],
  memoryManagerPolicy: ['None', 'Static'],
  topologyManagerPolicy: ['none', 'best-effort', 'restricted', 'single-numa-node'],
  topologyManagerScope: ['container', 'pod'],
};

/** What enforceNodeAllocatable may have, and the cgroup that it then needs. */
export const ENFORCEMENTS: ReadonlyMap<string, 'systemReservedCgroup' | 'kubeReservedCgroup' | undefined> =
  new Map([
    ['none', undefined],
    ['pods', undefined],
    ['system-reserved', 'systemReservedCgroup'],
    ['system-reserved-compressible', 'systemReservedCgroup'],
    ['kube-reserved', 'kubeReservedCgroup'],
    ['kube-reserved-compressible', 'kubeReservedCgroup'],
  ]);

/** The stage of a policy option decides on the feature gate that it needs. */
export type Stage = 'Alpha' | 'Beta' | 'stable';

/** The options of policies: their stage in 1.32, and from 1.36 on. */
export const OPTION_STAGES: Readonly<
  Record<
    'cpuManagerPolicyOptions' | 'topologyManagerPolicyOptions',
    Readonly<Record<string, readonly [Stage, Stage]>>
  >
> = {
  cpuManagerPolicyOptions: {
    'full-pcpus-only': ['Beta', 'stable'],
    'distribute-cpus-across-numa': ['Alpha', 'Beta'],
    'align-by-socket': ['Alpha', 'Alpha'],
    'distribute-cpus-across-cores': ['Alpha', 'Alpha'],
    'strict-cpu-reservation': ['Alpha', 'stable'],
    'prefer-align-cpus-by-uncorecache': ['Alpha', 'Beta'],
  },
  topologyManagerPolicyOptions: {
    'prefer-closest-numa-nodes': ['stable', 'stable'],
    'max-allowable-numa-nodes': ['Beta', 'stable'],
  },
};

/** What is proposed, and numalign takes already: a kubelet would not start with it. */
export const COMING: Readonly<Record<string, string>> = {
  'restrict-to-cpu-numa-nodes': 'provisional: no kubelet has this option yet (kubernetes 138172)',
  'numa-allocation-strategy': 'provisional: no kubelet has this option yet (KEP-6007)',
  memoryManagerPolicyOptions: 'provisional: no kubelet has this field yet (KEP-6232)',
  MemoryManagerDriftTolerance: 'provisional: no kubelet has this gate yet (KEP-6232)',
};
