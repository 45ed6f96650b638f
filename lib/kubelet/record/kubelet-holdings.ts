// KubeletHoldings: what the kubelet has assigned, as the caller reports it -> checked, frozen pods
// in a fixed order.
import type { MemoryBlock } from '../../account/booked-memory.js';
import {
  cpusOfKubeletPod,
  type KubeletContainer,
  type KubeletPod,
  kubeletPodName,
} from '../../account/kubelet-record.js';
import { checkOptions, invalidOption, isName, NAME } from '../../base/check-options.js';
import { isMemoryType } from '../../input/values/memory-types.js';
import { option } from '../../input/values/option-values.js';
import { CpuSet, NodeSet } from '../../machine/cpu-set.js';

/** The exclusive resources of a container of the kubelet. Left out: none. */
export interface KubeletContainerHoldings {
  /** Name of the container; unique in its pod. */
  name: string;
  /** Its exclusive CPUs, as a set, a list such as `0-3` or ids; none in the shared pool. */
  cpus?: CpuSet | string | Iterable<number>;
  /** Its memory and hugepages by type and NUMA nodes, in bytes. */
  memory?: readonly MemoryBlock[];
  /** Device ids by resource. */
  devices?: Readonly<Record<string, readonly string[]>>;
}

/** A pod of the kubelet, identified by namespace and name. */
export interface KubeletPodHoldings {
  /** Null or left out if the kubelet does not report it. */
  uid?: string | null;
  /** Kubernetes namespace of the pod. */
  namespace: string;
  /** Name of the pod within its namespace. */
  name: string;
  /** The containers that hold exclusive resources; others may be left out. */
  containers: readonly KubeletContainerHoldings[];
}

const nameOf = (value: unknown, where: string) => option.that(value, where, isName, NAME);

function parseCpus(value: unknown, where: string): CpuSet {
  const isGiven = typeof value === 'string' || (typeof value === 'object' && value !== null);
  if (!isGiven) return invalidOption(where, value, 'a CpuSet, a list such as "0-3,8", or ids');
  return CpuSet.coerce(value as CpuSet | string | Iterable<number>);
}

function parseBlock(value: unknown, where: string): MemoryBlock {
  const block = checkOptions(value, ['nodes', 'type', 'bytes'], where);
  const nodes = option.listOf(block.nodes, `${where}.nodes`, (id, at) =>
    option.whole(id, at, NodeSet.MAX_ID),
  );
  if (nodes.length === 0) invalidOption(`${where}.nodes`, nodes, 'the ids of one or more NUMA nodes');
  const type = option.text(block.type, `${where}.type`);
  if (!isMemoryType(type)) invalidOption(`${where}.type`, type, "'memory' or 'hugepages-<size>'");
  const bytes = option.whole(block.bytes, `${where}.bytes`);
  return Object.freeze({ nodes: Object.freeze(NodeSet.from(nodes).toArray()), type, bytes });
}

function parseDevices(value: unknown, where: string): KubeletContainer['devices'] {
  const devices = option.record(value, where, (ids, at) => option.listOf(ids, at, nameOf));
  const nonEmpty = Object.entries(devices).filter(([, ids]) => ids.length > 0);
  nonEmpty.sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.freeze(
    Object.fromEntries(
      nonEmpty.map(([resource, ids]) => [resource, Object.freeze([...new Set(ids)].sort())]),
    ),
  );
}

function parseContainer(value: unknown, where: string): KubeletContainer {
  const container = checkOptions(value, ['name', 'cpus', 'memory', 'devices'], where);
  const memory = option.listOf(container.memory ?? [], `${where}.memory`, parseBlock);
  return Object.freeze({
    name: nameOf(container.name, `${where}.name`),
    cpus: option.optional(container.cpus, `${where}.cpus`, parseCpus) ?? CpuSet.EMPTY,
    memory: Object.freeze(memory.filter(({ bytes }) => bytes > 0)),
    devices: parseDevices(container.devices ?? {}, `${where}.devices`),
  });
}

const isEmpty = ({ cpus, memory, devices }: KubeletContainer) =>
  cpus.isEmpty && memory.length === 0 && Object.keys(devices).length === 0;

function parsePod(value: unknown, where: string): KubeletPod {
  const pod = checkOptions(value, ['uid', 'namespace', 'name', 'containers'], where);
  const containers = option.listOf(pod.containers, `${where}.containers`, parseContainer);
  const names = containers.map(({ name }) => name);
  const twice = names.find((name, i) => names.indexOf(name) !== i);
  if (twice !== undefined) invalidOption(`${where}.containers`, twice, 'containers with different names');
  return Object.freeze({
    uid: pod.uid === undefined || pod.uid === null ? null : nameOf(pod.uid, `${where}.uid`),
    namespace: nameOf(pod.namespace, `${where}.namespace`),
    name: nameOf(pod.name, `${where}.name`),
    containers: Object.freeze(containers.filter((container) => !isEmpty(container))),
  });
}

/**
 * The pods that hold something, in the order of their names. Containers of one pod may have the
 * same CPUs, since init containers leave theirs to later ones.
 * @throws ERR_INVALID_OPTION, also if a pod occurs twice or a CPU is in two pods; ERR_INVALID_LIST,
 *   ERR_INVALID_ARGUMENT
 */
export function parseHoldings(value: unknown): readonly KubeletPod[] {
  const pods = option.listOf(value, 'pods', parsePod);
  const names = new Set<string>();
  let union = CpuSet.EMPTY;
  for (const pod of pods) {
    const name = kubeletPodName(pod);
    if (names.has(name)) invalidOption('pods', name, 'pods with different namespaces or names');
    names.add(name);
    const cpus = cpusOfKubeletPod(pod);
    const both = cpus.intersection(union);
    if (!both.isEmpty) invalidOption('pods', both, 'pods with different exclusive CPUs');
    union = union.union(cpus);
  }
  const holders = pods.filter(({ containers }) => containers.length > 0);
  return Object.freeze(holders.sort((a, b) => (kubeletPodName(a) < kubeletPodName(b) ? -1 : 1)));
}
