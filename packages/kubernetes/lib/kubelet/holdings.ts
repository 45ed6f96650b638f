// Holdings: what the kubelet has assigned to containers exclusively, from its lists and its
// checkpoint files. Pure.
import { CpuSet } from 'numalign';
import type { CpuManagerState, KubeletMemoryBlock, MemoryManagerState } from 'numalign/kubelet';

export interface MemoryHolding {
  /** The NUMA nodes that share it. */
  readonly nodes: readonly number[];
  /** `memory`, `hugepages-2Mi`. */
  readonly type: string;
  readonly bytes: number;
}

export interface DeviceHolding {
  readonly id: string;
  /** The ids of its NUMA nodes; empty if the plugin does not report them. */
  readonly nodes: readonly number[];
}

export interface ContainerHoldings {
  readonly name: string;
  /** Exclusive CPUs; empty if it runs in the shared pool. */
  readonly cpus: CpuSet;
  readonly memory: readonly MemoryHolding[];
  /** By resource. */
  readonly devices: Readonly<Record<string, readonly DeviceHolding[]>>;
}

export interface PodHoldings {
  /** Empty if only the pod's uid is known, which then is its name. */
  readonly namespace: string;
  readonly name: string;
  /** Only if a checkpoint file has it. */
  readonly uid?: string;
  /** The containers that hold something. */
  readonly containers: readonly ContainerHoldings[];
}

/** A container in the kubelet's files. */
export interface FiledContainer extends ContainerHoldings {
  readonly uid: string;
}

const isHolding = ({ cpus, memory, devices }: ContainerHoldings) =>
  !cpus.isEmpty || memory.length > 0 || Object.keys(devices).length > 0;

/** The pods that hold something, with the containers that do. */
export function holdingPods(pods: readonly PodHoldings[]): PodHoldings[] {
  return pods
    .map((pod) => ({ ...pod, containers: pod.containers.filter(isHolding) }))
    .filter(({ containers }) => containers.length > 0);
}

/** The same without the devices of some resources. */
export function withoutDevices(pods: readonly PodHoldings[], resources: ReadonlySet<string>): PodHoldings[] {
  const holdingsOf = (container: ContainerHoldings) => ({
    ...container,
    devices: Object.fromEntries(
      Object.entries(container.devices).filter(([resource]) => !resources.has(resource)),
    ),
  });
  return holdingPods(pods.map((pod) => ({ ...pod, containers: pod.containers.map(holdingsOf) })));
}

/** Undefined for a file that does not exist. */
export interface KubeletStates {
  readonly cpu?: CpuManagerState | undefined;
  readonly memory?: MemoryManagerState | undefined;
  readonly devices?: readonly FiledContainer[] | undefined;
}

// What the kubelet books for a pod as a whole, beyond its containers, belongs to no container. No
// container can have this name.
const POD_ITSELF = '(pod)';

function filedCpus({ entries, podEntries }: CpuManagerState): FiledContainer[] {
  const container = (uid: string, name: string, cpus: CpuSet) => ({
    uid,
    name,
    cpus,
    memory: [],
    devices: {},
  });
  const ofContainers = [...entries].flatMap(([uid, containers]) =>
    [...containers].map(([name, cpus]) => container(uid, name, cpus)),
  );
  const booked = [...(podEntries ?? [])].map(([uid, { cpuSet }]) => {
    const parts = [...(entries.get(uid)?.values() ?? [])];
    return container(
      uid,
      POD_ITSELF,
      parts.reduce((rest, cpus) => rest.difference(cpus), cpuSet),
    );
  });
  return [...ofContainers, ...booked];
}

const blockOf = ({ numaAffinity, type, size }: KubeletMemoryBlock): MemoryHolding => ({
  nodes: numaAffinity,
  type,
  bytes: Number(size),
});

const withMemory = (uid: string, name: string, memory: readonly MemoryHolding[]): FiledContainer => ({
  uid,
  name,
  memory,
  cpus: CpuSet.EMPTY,
  devices: {},
});

function wholePodMemory({ entries, podEntries }: MemoryManagerState): FiledContainer[] {
  const placeOf = ({ type, nodes }: MemoryHolding) => `${type} on ${nodes}`;
  return [...(podEntries ?? [])].map(([uid, { memoryBlocks }]) => {
    const parts = [...(entries.get(uid)?.values() ?? [])].flat().map(blockOf);
    const rest = memoryBlocks.map(blockOf).map((block) => {
      const inContainers = parts.filter((part) => placeOf(part) === placeOf(block));
      return { ...block, bytes: inContainers.reduce((left, { bytes }) => left - bytes, block.bytes) };
    });
    return withMemory(
      uid,
      POD_ITSELF,
      rest.filter(({ bytes }) => bytes > 0),
    );
  });
}

function filedMemory(state: MemoryManagerState): FiledContainer[] {
  const ofContainers = [...state.entries].flatMap(([uid, containers]) =>
    [...containers].map(([name, blocks]) => withMemory(uid, name, blocks.map(blockOf))),
  );
  return [...ofContainers, ...wholePodMemory(state)];
}

function grouped(containers: readonly FiledContainer[]): Map<string, Map<string, ContainerHoldings>> {
  const pods = new Map<string, Map<string, ContainerHoldings>>();
  for (const { uid, name, cpus, memory, devices } of containers) {
    const pod = pods.get(uid) ?? new Map<string, ContainerHoldings>();
    const before = pod.get(name) ?? { name, cpus: CpuSet.EMPTY, memory: [], devices: {} };
    pod.set(name, {
      name,
      cpus: before.cpus.union(cpus),
      memory: [...before.memory, ...memory],
      devices: { ...before.devices, ...devices },
    });
    pods.set(uid, pod);
  }
  return pods;
}

/** The holdings that the files report without the kubelet's list. */
export function holdingsOfFiles({ cpu, memory, devices }: KubeletStates): PodHoldings[] {
  const containers = [
    ...(cpu ? filedCpus(cpu) : []),
    ...(memory ? filedMemory(memory) : []),
    ...(devices ?? []),
  ];
  return holdingPods(
    Array.from(grouped(containers), ([uid, pod]) => ({
      namespace: '',
      name: uid,
      uid,
      containers: [...pod.values()],
    })),
  );
}

/**
 * The kubelet's list, with the CPUs of its file, and the memory of pods as a whole, which it does
 * not list. Kubelets before 1.21 also list the CPUs of the shared pool, and none lists a pod's uid.
 */
export function holdingsOfList(
  list: readonly PodHoldings[],
  cpu: CpuManagerState,
  memory?: MemoryManagerState,
): PodHoldings[] {
  const files = [...filedCpus(cpu), ...(memory ? wholePodMemory(memory) : [])].filter(isHolding);
  const matches = new Set<FiledContainer>();
  const pods = list.map((pod) => {
    const uids = new Set<string>();
    const containers = pod.containers.map((container) => {
      const found = files.find(({ name, cpus }) => name === container.name && cpus.equals(container.cpus));
      if (!found) return { ...container, cpus: CpuSet.EMPTY };
      matches.add(found);
      uids.add(found.uid);
      return container;
    });
    const [uid] = uids;
    return uid === undefined ? { ...pod, containers } : { ...pod, uid, containers };
  });
  // CPUs of pods that are not listed yet or no longer, and what is booked for listed pods as a
  // whole.
  const rest = grouped(files.filter((each) => !matches.has(each)));
  const byUid = new Map(pods.map((pod) => [pod.uid, pod]));
  const fullPods = pods.map((pod) => {
    const more = pod.uid === undefined ? undefined : rest.get(pod.uid);
    return more ? { ...pod, containers: [...pod.containers, ...more.values()] } : pod;
  });
  const others = [...rest].filter(([uid]) => !byUid.has(uid));
  return holdingPods([
    ...fullPods,
    ...others.map(([uid, pod]) => ({ namespace: '', name: uid, uid, containers: [...pod.values()] })),
  ]);
}
