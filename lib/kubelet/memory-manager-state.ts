// MemoryManagerState: the file of the kubelet's Memory Manager.
import { MEMORY_MANAGER_STATE } from '../base/kubelet-features.js';
import type { ByContainer } from './cpu-manager-state.js';
import { int, intKey, list, map, pointer, struct, text, textKey, uint64 } from './go-value.js';
import {
  checksum,
  type Header,
  hasData,
  type KubeletFormatOptions,
  type KubeletWriteOptions,
  mapValues,
  NEWER_MEMBERS,
  podEntriesField,
  policyName,
  print,
  printWithData,
  readManagerFile,
  readVerified,
  unusable,
  type Verified,
} from './kubelet-format.js';

/** The amounts of one type of memory on a NUMA node, in bytes. */
export interface KubeletMemoryTable {
  /** Bytes that the node has. For `memory`, this includes hugepages. */
  readonly total: bigint;
  /** Bytes kept from pods by `reservedMemory`. */
  readonly systemReserved: bigint;
  /** Bytes that pods can have. */
  readonly allocatable: bigint;
  /** Bytes that pods have. */
  readonly reserved: bigint;
  /** Bytes of `allocatable` that no pod has. */
  readonly free: bigint;
}

/** A NUMA node, as the kubelet has it. */
export interface KubeletNumaNode {
  /** The number of memory blocks on this node, including empty ones. */
  readonly numberOfAssignments: number;
  /** Amounts by memory type, such as `memory` and `hugepages-2Mi`. */
  readonly memoryMap: ReadonlyMap<string, KubeletMemoryTable>;
  /** Ids of the nodes that are allocated together with this one. */
  readonly cells: readonly number[];
}

/** Memory of a container, as the kubelet has it. */
export interface KubeletMemoryBlock {
  /** Ids of the NUMA nodes that share the block. */
  readonly numaAffinity: readonly number[];
  /** `memory`, or a hugepage type like `hugepages-2Mi`. */
  readonly type: string;
  /** Size in bytes, over all of these nodes together. */
  readonly size: bigint;
}

/** The content of memory_manager_state. */
export interface MemoryManagerState {
  /** `Static` or `None`. */
  readonly policyName: string;
  /** The NUMA nodes of the machine, by id. */
  readonly machineState: ReadonlyMap<number, KubeletNumaNode>;
  /** Memory blocks by pod uid and container name. */
  readonly entries: ReadonlyMap<string, ReadonlyMap<string, readonly KubeletMemoryBlock[]>>;
  /** Memory blocks of pods as a whole, by pod uid. Left out as in {@link CpuManagerState}. */
  readonly podEntries?: ReadonlyMap<string, { readonly memoryBlocks: readonly KubeletMemoryBlock[] }>;
}

interface NodeState {
  readonly numberOfAssignments: number;
  readonly memoryMap: ReadonlyMap<string, KubeletMemoryTable | null> | null;
  readonly cells: readonly number[] | null;
}

interface Block {
  readonly numaAffinity: readonly number[] | null;
  readonly type: string;
  readonly size: bigint;
}

interface MemoryFile extends Header {
  readonly machineState: ReadonlyMap<number, NodeState | null> | null;
  readonly entries: ReadonlyMap<string, ByContainer<readonly Block[] | null>> | null;
}

interface PodEntry {
  readonly memoryBlocks: readonly Block[] | null;
}

interface MemoryFileWithPods extends MemoryFile {
  readonly podEntries: ReadonlyMap<string, PodEntry> | null;
}

const RESOURCE = 'v1.ResourceName';

const MEMORY_TABLE = struct<KubeletMemoryTable>('state.MemoryTable', {
  total: { go: 'TotalMemSize', type: uint64() },
  systemReserved: { go: 'SystemReserved', type: uint64() },
  allocatable: { go: 'Allocatable', type: uint64() },
  reserved: { go: 'Reserved', type: uint64() },
  free: { go: 'Free', type: uint64() },
});

const NODE_STATE = struct<NodeState>('state.NUMANodeState', {
  numberOfAssignments: { go: 'NumberOfAssignments', type: int },
  memoryMap: { go: 'MemoryMap', type: map(textKey(RESOURCE), pointer(MEMORY_TABLE)) },
  cells: { go: 'Cells', type: list(int) },
});

const BLOCK = struct<Block>('state.Block', {
  numaAffinity: { go: 'NUMAAffinity', type: list(int) },
  type: { go: 'Type', type: text(RESOURCE) },
  size: { go: 'Size', type: uint64() },
});

const MEMORY_FIELDS = {
  policyName,
  machineState: { go: 'MachineState', type: map(intKey, pointer(NODE_STATE), 'state.NUMANodeMap') },
  entries: {
    go: 'Entries',
    type: map(textKey(), map(textKey(), list(BLOCK)), 'state.ContainerMemoryAssignments'),
    omitEmpty: true,
  },
};

const POD_ENTRY = struct<PodEntry>('state.PodMemoryAssignment', {
  memoryBlocks: { go: 'MemoryBlocks', type: list(BLOCK), omitEmpty: true },
});

const CHECKPOINT = 'state.MemoryManagerCheckpoint';

export const MEMORY_FILE = struct<MemoryFile>(CHECKPOINT, { ...MEMORY_FIELDS, checksum }, NEWER_MEMBERS);
const WITH_PODS = {
  ...MEMORY_FIELDS,
  podEntries: podEntriesField(POD_ENTRY, 'state.PodMemoryAssignments'),
};
export const MEMORY_FILE_V2 = struct<MemoryFileWithPods>(
  CHECKPOINT,
  { ...WITH_PODS, checksum },
  NEWER_MEMBERS,
);
const MEMORY_DATA = struct<Omit<MemoryFileWithPods, 'checksum'>>(CHECKPOINT, WITH_PODS);

/**
 * Returns the text of memory_manager_state as the kubelet writes it: one line without a newline.
 * With `podEntries`, also empty ones, it is the version of the feature gate
 * PodLevelResourceManagers; for v1.37 it is the version with `data`.
 */
export function formatMemoryManagerState(
  state: MemoryManagerState,
  options: KubeletWriteOptions = {},
): string {
  const { podEntries = null } = state;
  if (hasData(options)) {
    const older = print(MEMORY_FILE, { ...state, checksum: 0n });
    return printWithData(older, MEMORY_DATA, { ...state, podEntries });
  }
  if (!podEntries) return print(MEMORY_FILE, { ...state, checksum: 0n });
  return print(MEMORY_FILE_V2, { ...state, podEntries, checksum: 0n });
}

function present<T>(value: T | null, what: string): T {
  return value ?? unusable(MEMORY_MANAGER_STATE, `${what} is null`, { value: null, valid: 'an object' });
}

const EMPTY: MemoryFile = { policyName: '', machineState: new Map(), entries: new Map(), checksum: 0n };

const blocksOf = (blocks: readonly Block[] | null) =>
  (blocks ?? []).map((block) => ({ ...block, numaAffinity: block.numaAffinity ?? [] }));

/**
 * Reads the text of memory_manager_state. null: no file, so nothing is given out under the policy
 * (default: Static).
 * @throws ERR_KUBELET_STATE if the kubelet would refuse it, for members that no known kubelet
 *   writes, and for a file without a checksum; with `allowUnverified` the result has `verified:
 *   false` instead
 */
export function parseMemoryManagerState(
  file: string | null,
  options: KubeletFormatOptions = {},
): Verified<MemoryManagerState> {
  const { policy = 'Static', podLevelResourceManagers } = options;
  if (file === null) {
    const none = podLevelResourceManagers && { podEntries: new Map() };
    return { policyName: policy, machineState: new Map(), entries: new Map(), ...none, verified: true };
  }
  const { policyName, machineState, entries, podEntries, verified } = readManagerFile(
    {
      name: MEMORY_MANAGER_STATE,
      newest: MEMORY_FILE_V2,
      empty: { ...EMPTY, podEntries: new Map() },
      readOlder: (json) =>
        readVerified(MEMORY_FILE, { name: MEMORY_MANAGER_STATE, json, empty: EMPTY }, options),
    },
    file,
    options,
  );
  return {
    policyName,
    machineState: mapValues(machineState, (value) => {
      const { numberOfAssignments, memoryMap, cells } = present(value, 'a NUMA node of machineState');
      const tables = mapValues(memoryMap, (table) => present(table, 'a table of memoryMap'));
      return { numberOfAssignments, memoryMap: tables, cells: cells ?? [] };
    }),
    entries: mapValues(entries, (containers) => mapValues(containers, blocksOf)),
    ...(podLevelResourceManagers && {
      podEntries: mapValues(podEntries, ({ memoryBlocks }) => ({ memoryBlocks: blocksOf(memoryBlocks) })),
    }),
    verified,
  };
}
