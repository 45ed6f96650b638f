// Manifest: the containers of a pod's manifest, as a runtime would report them. Pure.
import { parsePod, parseQuantity, withUid } from 'numalign/tools';
import { type Container, ContainerState, type PodSandbox } from '../nri/messages.js';

/** A pod, and its containers in the order of their starts. */
export interface ReportedPod {
  readonly pod: PodSandbox;
  readonly containers: readonly Container[];
}

interface ManifestContainer {
  readonly name: string;
  readonly resources?: {
    readonly requests?: Readonly<Record<string, string | number>>;
    readonly limits?: Readonly<Record<string, string | number>>;
  };
}

interface Manifest {
  readonly metadata?: {
    readonly name?: string;
    readonly namespace?: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly spec?: {
    readonly initContainers?: readonly ManifestContainer[];
    readonly containers?: readonly ManifestContainer[];
  };
}

// The kubelet's numbers.
const PERIOD = 100_000;
const SHARES_PER_CPU = 1024;
const LEAST_SHARES = 2;
const PARENTS = {
  Guaranteed: '/kubepods',
  Burstable: '/kubepods/burstable',
  BestEffort: '/kubepods/besteffort',
};
const PAGES: Readonly<Record<string, string>> = { Ki: 'KB', Mi: 'MB', Gi: 'GB' };

const optional = (value: number | undefined) => (value === undefined ? null : { value });
// Of a quantity that is parsed.
const NANO = 1_000_000_000n;

function resourcesOf({ resources: { requests = {}, limits = {} } = {} }: ManifestContainer) {
  const amount = (value: string | number | undefined, name: string, unit: bigint) =>
    value === undefined ? undefined : Number((parseQuantity(value, name) * unit + NANO - 1n) / NANO);
  const millis = (value: string | number | undefined) => amount(value, 'cpu', 1000n);
  const bytes = (value: string | number | undefined, name: string) => amount(value, name, 1n);
  const limit = millis(limits.cpu);
  const request = millis(requests.cpu) ?? limit ?? 0;
  return {
    cpu: {
      shares: optional(Math.max(LEAST_SHARES, Math.floor((request * SHARES_PER_CPU) / 1000))),
      quota: optional(limit === undefined ? undefined : (limit * PERIOD) / 1000),
      period: optional(limit === undefined ? undefined : PERIOD),
      cpus: '',
      mems: '',
    },
    memory: { limit: optional(bytes(limits.memory, 'memory')), reservation: null, swap: null },
    hugepage_limits: Object.entries(limits).flatMap(([name, value]) => {
      const [, size, unit] = /^hugepages-(\d+)([KMG]i)$/.exec(name) ?? [];
      return unit === undefined ? [] : [{ page_size: `${size}${PAGES[unit]}`, limit: bytes(value, name)! }];
    }),
    unified: {},
  };
}

/** @throws NumalignError ERR_INVALID_POD, ERR_INVALID_QUANTITY */
export function reportedPod(manifest: object, uid = 'pod'): ReportedPod {
  const { qosClass } = parsePod(withUid(manifest as never, uid));
  const { metadata = {}, spec = {} } = manifest as Manifest;
  const { name = 'pod', namespace = 'default', labels = {}, annotations = {} } = metadata;
  const parent = `${PARENTS[qosClass]}/pod${uid}`;
  const pod: PodSandbox = {
    ...{ id: uid, name, uid, namespace, labels, annotations, runtime_handler: '', pid: 0 },
    linux: { pod_overhead: null, pod_resources: null, cgroup_parent: parent, cgroups_path: '' },
  };
  return { pod, containers: reportedContainers(spec, pod) };
}

/** The containers of a pod's specification. @throws NumalignError ERR_INVALID_QUANTITY */
export const reportedContainers = (
  { initContainers = [], containers = [] }: NonNullable<Manifest['spec']>,
  { id, linux }: Pick<PodSandbox, 'id' | 'linux'>,
): Container[] =>
  [...initContainers, ...containers].map((container) => ({
    ...{ id: container.name, pod_sandbox_id: id, name: container.name, state: ContainerState.CREATED },
    ...{ labels: {}, annotations: {}, env: [], pid: 0, CDI_devices: [] },
    linux: {
      devices: [],
      resources: resourcesOf(container),
      oom_score_adj: null,
      cgroups_path: `${linux?.cgroup_parent ?? ''}/${container.name}`,
    },
  }));
