// The file of the kubelet's Memory Manager.
import type { ByContainer } from './cpu-manager-state.js';
import { int, intKey, list, map, pointer, struct, text, textKey, uint64 } from './go-value.js';
import {
  checkChecksum,
  checkPolicy,
  checksum,
  type Header,
  type KubeletFormatOptions,
  mapValues,
  parseJson,
  policyName,
  print,
  readInto,
  unusable,
} from './kubelet-format.js';

export const MEMORY_MANAGER_STATE = 'memory_manager_state';

/** What a NUMA node has of one type of memory, in bytes. */
export interface KubeletMemoryTable {
  /** Of `memory` with what hugepages take. */
  readonly total: bigint;
  readonly systemReserved: bigint;
  readonly allocatable: bigint;
  readonly reserved: bigint;
  readonly free: bigint;
}

export interface KubeletNumaNode {
  /** How many memory blocks are on this node, those of no bytes too. */
  readonly numberOfAssignments: number;
  /** By type: `memory`, `hugepages-2Mi`. */
  readonly memoryMap: ReadonlyMap<string, KubeletMemoryTable>;
  /** The nodes that are allocated together with this one. */
  readonly cells: readonly number[];
}

export interface KubeletMemoryBlock {
  readonly numaAffinity: readonly number[];
  readonly type: string;
  /** Bytes. */
  readonly size: bigint;
}

export interface MemoryManagerState {
  /** `Static` or `None`. */
  readonly policyName: string;
  /** By the id of the NUMA node. */
  readonly machineState: ReadonlyMap<number, KubeletNumaNode>;
  /** Memory blocks by pod uid and container name. */
  readonly entries: ReadonlyMap<string, ReadonlyMap<string, readonly KubeletMemoryBlock[]>>;
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

export const MEMORY_FILE = struct<MemoryFile>('state.MemoryManagerCheckpoint', {
  policyName,
  machineState: { go: 'MachineState', type: map(intKey, pointer(NODE_STATE), 'state.NUMANodeMap') },
  entries: {
    go: 'Entries',
    type: map(textKey(), map(textKey(), list(BLOCK)), 'state.ContainerMemoryAssignments'),
    omitEmpty: true,
  },
  checksum,
});

/** The text of memory_manager_state, as the kubelet would write it: one line, no newline. */
export function formatMemoryManagerState(state: MemoryManagerState): string {
  return print(MEMORY_FILE, { ...state, checksum: 0n });
}

function present<T>(value: T | null, what: string): T {
  return value ?? unusable(MEMORY_MANAGER_STATE, `${what} is null`, { value: null, valid: 'an object' });
}

/**
 * Reads the text of memory_manager_state. null: there is no file, and nothing is given out under
 * the policy (default: Static).
 * @throws ERR_KUBELET_STATE where the kubelet would not take it
 */
export function parseMemoryManagerState(
  file: string | null,
  options: KubeletFormatOptions = {},
): MemoryManagerState {
  if (file === null)
    return { policyName: options.policy ?? 'Static', machineState: new Map(), entries: new Map() };
  const empty: MemoryFile = { policyName: '', machineState: new Map(), entries: new Map(), checksum: 0n };
  const read = readInto(MEMORY_FILE, MEMORY_MANAGER_STATE, parseJson(MEMORY_MANAGER_STATE, file), empty);
  checkChecksum(MEMORY_FILE, MEMORY_MANAGER_STATE, read);
  checkPolicy(MEMORY_MANAGER_STATE, read, options);
  return {
    policyName: read.policyName,
    machineState: mapValues(read.machineState ?? new Map<number, NodeState | null>(), (value) => {
      const { numberOfAssignments, memoryMap, cells } = present(value, 'a NUMA node of machineState');
      const tables = mapValues(memoryMap ?? new Map<string, KubeletMemoryTable | null>(), (table) =>
        present(table, 'a table of memoryMap'),
      );
      return { numberOfAssignments, memoryMap: tables, cells: cells ?? [] };
    }),
    entries: mapValues(
      read.entries ?? new Map<string, ByContainer<readonly Block[] | null>>(),
      (containers) =>
        mapValues(containers ?? new Map<string, readonly Block[] | null>(), (blocks) =>
          (blocks ?? []).map((block) => ({ ...block, numaAffinity: block.numaAffinity ?? [] })),
        ),
    ),
  };
}
