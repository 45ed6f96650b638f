// AdoptionRequest: a pod and what it already has, as callers describe it -> checked, frozen.
import type { MemoryBlock } from '../account/booked-memory.js';
import { checkOptions, isName, NAME } from '../base/check-options.js';
import { parseAim } from '../input/enforcement-options.js';
import type { Placement } from '../input/placement.js';
import { parsePod } from '../input/pods/pod-request.js';
import { CONTAINER_KEYS, type ContainerSpec } from '../input/pods/pod-spec.js';
import { isExtendedResource, podShape } from '../input/pods/resource-amounts.js';
import { type LastingOwner, parseLastingOwner } from '../input/requests/owner.js';
import { type AdmissionRequest, checkSignal } from '../input/requests/request.js';
import type { RequestOptions } from '../input/requests/request-options.js';
import { isMemoryType, pageBytes } from '../input/values/memory-types.js';
import { CpuSet } from '../machine/cpu-set.js';

/** What a container has, for {@link Manager.adopt}. */
export interface HeldByContainer {
  /** Its exclusive CPUs; null (the default): it runs in the shared pool. */
  readonly cpus?: CpuSet | string | null;
  /** Its memory, each type on NUMA nodes that share it, in ascending order; by default none. */
  readonly memory?: readonly MemoryBlock[];
  /** The ids of its devices by resource. */
  readonly devices?: Readonly<Record<string, readonly string[]>>;
}

/** A container and what it holds. Without requests and limits, it asks for what it holds. */
export interface AdoptedContainer extends ContainerSpec, HeldByContainer {}

/** A pod for {@link Manager.adopt}. */
export interface AdoptedPod {
  /** The uid; by default numalign makes one. */
  readonly uid?: string;
  /** The name; by default the uid. */
  readonly name?: string;
  /** Init containers and sidecars, in the order in which they start; by default none. */
  readonly initContainers?: readonly AdoptedContainer[];
  /** App containers; at least one. */
  readonly containers: readonly AdoptedContainer[];
}

/** The options of {@link Manager.adopt}. */
export interface AdoptOptions
  extends Pick<RequestOptions, 'enforcement' | 'require' | 'unmovableMembers' | 'signal'> {
  /**
   * `persistent`, or `{ cgroup }` as {@link RequestOptions.owner} has it.
   * @default `persistent`
   */
  owner?: LastingOwner;
}

/** What one container has, checked. */
export interface ContainerHolding {
  readonly cpus: CpuSet;
  readonly memory: readonly MemoryBlock[];
  /** Device ids by resource. */
  readonly devices: Readonly<Record<string, readonly string[]>>;
  /** True if the container says what it asks for. */
  readonly asks: boolean;
}

/** A request for an admission with a known result. */
export interface AdoptionRequest extends AdmissionRequest {
  readonly owner: LastingOwner;
  /** What the pod's containers have, by name. */
  readonly holdings: ReadonlyMap<string, ContainerHolding>;
}

const POD_KEYS = ['uid', 'name', 'initContainers', 'containers'] as const;
const HOLDING_KEYS = ['cpus', 'memory', 'devices'] as const satisfies readonly (keyof HeldByContainer)[];
const OPTIONS = ['owner', 'enforcement', 'require', 'unmovableMembers', 'signal'] as const;
const ID = `the ids of devices, each ${NAME}`;

/** @throws ERR_INVALID_POD, ERR_INVALID_OPTION, ERR_INVALID_QUANTITY, ERR_INVALID_LIST */
export function parseAdoption(pod: unknown, options: AdoptOptions, placement: Placement): AdoptionRequest {
  const checkedOptions = checkOptions(options, OPTIONS, 'adopt');
  const owner = parseLastingOwner(checkedOptions.owner ?? 'persistent');
  checkSignal(checkedOptions.signal);
  const fields = checkOptions(podShape.object(pod, 'the pod'), POD_KEYS, 'the pod');
  const holdings = new Map<string, ContainerHolding>();
  const split = (list: unknown, field: string) =>
    podShape.list(list, field).map((each, i) => {
      const at = `${field}[${i}]`;
      const fields = checkOptions(podShape.object(each, at), [...CONTAINER_KEYS, ...HOLDING_KEYS], at);
      const { cpus, memory, devices, ...spec } = fields;
      const asks = ['resources', 'requests', 'limits'].some((key) => (spec[key] ?? null) !== null);
      // The name is checked with the rest of the pod.
      holdings.set(String(spec.name), Object.freeze({ ...holdingOf({ cpus, memory, devices }, at), asks }));
      return spec;
    });
  const { initContainers, containers, ...named } = fields;
  const request = parsePod({
    ...named,
    initContainers: split(initContainers ?? [], 'initContainers'),
    containers: split(containers, 'containers'),
  });
  return Object.freeze({
    pod: request,
    owner,
    // numalign does not decide where it is.
    placement: Object.freeze({ ...placement, topologyPolicy: 'none', scope: 'container' }),
    enforcement: parseAim(checkedOptions),
    isForCaller: false,
    wait: false,
    holdings,
  });
}

function holdingOf({ cpus, memory, devices }: Record<string, unknown>, at: string) {
  return {
    cpus: podShape.optional(cpus ?? undefined, `${at}.cpus`, cpusOf) ?? CpuSet.EMPTY,
    memory: Object.freeze(
      podShape.optional(memory, `${at}.memory`, (list, where) => podShape.listOf(list, where, blockOf)) ?? [],
    ),
    devices: Object.freeze(podShape.optional(devices, `${at}.devices`, devicesOf) ?? {}),
  };
}

const cpusOf = (value: unknown, where: string) =>
  value instanceof CpuSet
    ? value
    : CpuSet.parse(podShape.text(value, where, 'a CpuSet or a list such as "0-3,8"'));

function blockOf(value: unknown, where: string): MemoryBlock {
  const { nodes, type, bytes } = checkOptions(
    podShape.object(value, where, 'a block of memory: { nodes, type, bytes }'),
    ['nodes', 'type', 'bytes'],
    where,
  );
  const isType = (name: unknown): name is string =>
    typeof name === 'string' && isMemoryType(name) && (name === 'memory' || pageBytes(name) !== undefined);
  return Object.freeze({
    nodes: Object.freeze(
      podShape.listOf(nodes, `${where}.nodes`, (node, each) => podShape.whole(node, each)),
    ),
    type: podShape.that(type, `${where}.type`, isType, '"memory", or hugepages such as "hugepages-2Mi"'),
    bytes: podShape.whole(bytes, `${where}.bytes`),
  });
}

function devicesOf(value: unknown, where: string): Record<string, readonly string[]> {
  const all = Object.entries(podShape.object(value, where, 'ids of devices by the name of the resource'));
  return Object.fromEntries(
    all.map(([resource, ids]) => {
      podShape.that(resource, where, isResource, 'keyed by names such as example.com/nic');
      const list = podShape.listOf(ids, `${where}.${resource}`, (id, each) =>
        podShape.that(id, each, isName, ID),
      );
      return [resource, Object.freeze([...new Set(list)])];
    }),
  );
}

const isResource = (name: unknown): name is string => isExtendedResource(name as string);
