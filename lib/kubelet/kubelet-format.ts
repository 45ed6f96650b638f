// The kubelet's state files (v1.32), cpu_manager_state and memory_manager_state: text <-> values,
// byte for byte and with their checksums. Pure. Read as the kubelet reads them, but for a file
// without a checksum, which it trusts.

import { type ErrorDetails, NumalignError } from '../base/errors.js';
import { CpuSet } from '../machine/cpu-set.js';
import { type GoJson, parseGoJson } from './go-json.js';
import {
  type GoType,
  GoTypeError,
  int,
  intKey,
  list,
  map,
  pointer,
  struct,
  text,
  textKey,
  uint64,
} from './go-value.js';

/** The names of the files in the kubelet's folder. */
export const CPU_MANAGER_STATE = 'cpu_manager_state';
export const MEMORY_MANAGER_STATE = 'memory_manager_state';

export interface CpuManagerState {
  /** `static` or `none`. */
  readonly policyName: string;
  /** The shared pool. */
  readonly defaultCpuSet: CpuSet;
  /** Exclusive CPUs by pod uid and container name. */
  readonly entries: ReadonlyMap<string, ReadonlyMap<string, CpuSet>>;
}

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

export interface KubeletFormatOptions {
  /** The policy that the file must be of. Default: any. */
  readonly policy?: string;
}

export interface CpuManagerFormatOptions extends KubeletFormatOptions {
  /**
   * Read a file with checksum 0 or none, as the kubelet does: nothing then tells damage from truth.
   * Default: refuse it.
   */
  readonly allowUnverified?: boolean;
  /**
   * For files of the first version, which name containers by their ids: pod uid and container name
   * by container id.
   */
  readonly runningContainers?: Readonly<Record<string, readonly [podUid: string, containerName: string]>>;
}

// ---- the kubelet's types

interface Header {
  readonly policyName: string;
  readonly checksum: bigint;
}

interface CpuFile<Entry> extends Header {
  readonly defaultCpuSet: string;
  readonly entries: ReadonlyMap<string, Entry> | null;
}

type ByContainer<T> = ReadonlyMap<string, T> | null;

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
const policyName = { go: 'PolicyName', type: text() };
const checksum = { go: 'Checksum', type: uint64('checksum.Checksum') };

function cpuFile<Entry>(entry: GoType<Entry>): GoType<CpuFile<Entry>> {
  return struct<CpuFile<Entry>>('state.CPUManagerCheckpoint', {
    policyName,
    defaultCpuSet: { go: 'DefaultCPUSet', type: text() },
    entries: { go: 'Entries', type: map(textKey(), entry), omitEmpty: true },
    checksum,
  });
}

const CPU_FILE_V1 = cpuFile(text());
const CPU_FILE = cpuFile(map(textKey(), text()));

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

const MEMORY_FILE = struct<MemoryFile>('state.MemoryManagerCheckpoint', {
  policyName,
  machineState: { go: 'MachineState', type: map(intKey, pointer(NODE_STATE), 'state.NUMANodeMap') },
  entries: {
    go: 'Entries',
    type: map(textKey(), map(textKey(), list(BLOCK)), 'state.ContainerMemoryAssignments'),
    omitEmpty: true,
  },
  checksum,
});

// ---- the checksum

/** The text under a file's checksum. */
function rendering<T extends Header>(type: GoType<T>, file: T): string {
  return `(*${type.name})${type.render({ ...file, checksum: 0n })}`;
}

/** 32-bit FNV-1a. */
export function fnv1a(bytes: Uint8Array): number {
  let hash = 2_166_136_261;
  for (const byte of bytes) hash = Math.imul(hash ^ byte, 16_777_619);
  return hash >>> 0;
}

function checksumOf<T extends Header>(type: GoType<T>, file: T): bigint {
  return BigInt(fnv1a(Buffer.from(rendering(type, file))));
}

function print<T extends Header>(type: GoType<T>, file: T): string {
  return type.write({ ...file, checksum: checksumOf(type, file) });
}

// ---- printing

function mapValues<K, A, B>(from: ReadonlyMap<K, A>, change: (value: A) => B): Map<K, B> {
  return new Map(Array.from(from, ([key, value]) => [key, change(value)]));
}

function encodeCpu({ policyName, defaultCpuSet, entries }: CpuManagerState): CpuFile<ByContainer<string>> {
  return {
    policyName,
    defaultCpuSet: defaultCpuSet.toString(),
    entries: mapValues(entries, (pod) => mapValues(pod, String)),
    checksum: 0n,
  };
}

/** The text of cpu_manager_state, as the kubelet would write it: one line, no newline. */
export function formatCpuManagerState(state: CpuManagerState): string {
  return print(CPU_FILE, encodeCpu(state));
}

/** The text of memory_manager_state, as the kubelet would write it: one line, no newline. */
export function formatMemoryManagerState(state: MemoryManagerState): string {
  return print(MEMORY_FILE, { ...state, checksum: 0n });
}

/** The texts that the files' checksums are made of. */
export const checksummed = {
  cpu: (state: CpuManagerState): string => rendering(CPU_FILE, encodeCpu(state)),
  memory: (state: MemoryManagerState): string => rendering(MEMORY_FILE, { ...state, checksum: 0n }),
};

// ---- reading

function unusable(name: string, message: string, details: ErrorDetails = {}): never {
  throw new NumalignError('ERR_KUBELET_STATE', `${name} cannot be used: ${message}`, {
    file: name,
    ...details,
  });
}

function parseJson(name: string, file: string): GoJson {
  try {
    return parseGoJson(file);
  } catch (cause) {
    return unusable(name, `it is no JSON (${(cause as Error).message})`, {
      value: file,
      valid: 'JSON',
      cause,
    });
  }
}

function readInto<T extends Header>(type: GoType<T>, name: string, json: GoJson, empty: T): T {
  try {
    return type.read(json, empty, name);
  } catch (cause) {
    if (!(cause instanceof GoTypeError)) throw cause;
    return unusable(name, cause.message, { valid: "the kubelet's fields", cause });
  }
}

function checkChecksum<T extends Header>(type: GoType<T>, name: string, file: T): void {
  const valid = checksumOf(type, file);
  if (file.checksum === valid) return;
  unusable(name, `it is damaged: its checksum is ${file.checksum}, its content has ${valid}`, {
    value: file.checksum,
    valid,
  });
}

function checkPolicy(
  name: string,
  { policyName: value }: Header,
  { policy: valid }: KubeletFormatOptions,
): void {
  if (valid === undefined || value === valid) return;
  unusable(name, `it is of the policy ${JSON.stringify(value)}, not ${JSON.stringify(valid)}`, {
    value,
    valid,
  });
}

function parseCpus(list: string, what: string): CpuSet {
  try {
    return CpuSet.parse(list);
  } catch (cause) {
    return unusable(CPU_MANAGER_STATE, `${what} are no list of CPUs (${(cause as Error).message})`, {
      value: list,
      valid: 'a list such as 0-3,8',
      cause,
    });
  }
}

type Entries = ReadonlyMap<string, ByContainer<string>>;
type Verified<T> = T & { readonly verified: boolean };

// Unverified files are told apart before anything is made of them.
function checkCpuFile<T extends Header>(type: GoType<T>, file: T, isAllowed: boolean): boolean {
  if (file.checksum !== 0n) {
    checkChecksum(type, CPU_MANAGER_STATE, file);
    return true;
  }
  if (isAllowed) return false;
  return unusable(CPU_MANAGER_STATE, 'it has no checksum, so that nothing tells whether it is damaged', {
    value: file.checksum,
    valid: 'a checksum, or allowUnverified',
  });
}

function fromVersion1(
  entries: CpuFile<string>['entries'],
  running: CpuManagerFormatOptions['runningContainers'],
) {
  const pods = new Map<string, Map<string, string>>();
  for (const [id, cpus] of entries ?? []) {
    const container = running && Object.hasOwn(running, id) ? running[id]! : undefined;
    if (!container) {
      unusable(
        CPU_MANAGER_STATE,
        `it names container ${JSON.stringify(id)}, which is not among the running ones`,
        {
          value: id,
          valid: Object.keys(running ?? {}),
        },
      );
    }
    const [uid, name] = container;
    pods.set(uid, (pods.get(uid) ?? new Map()).set(name, cpus));
  }
  return pods;
}

// The kubelet tries the old format first. A file without entries can be of either.
function readCpuFile(json: GoJson, options: CpuManagerFormatOptions): Verified<CpuFile<ByContainer<string>>> {
  const { allowUnverified = false, runningContainers } = options;
  const empty = { policyName: '', defaultCpuSet: '', entries: new Map<string, never>(), checksum: 0n };
  let old: Verified<CpuFile<string>>;
  try {
    const file = readInto<CpuFile<string>>(CPU_FILE_V1, CPU_MANAGER_STATE, json, empty);
    old = { ...file, verified: checkCpuFile(CPU_FILE_V1, file, allowUnverified) };
  } catch (error) {
    if (!(error instanceof NumalignError)) throw error;
    const file = readInto<CpuFile<ByContainer<string>>>(CPU_FILE, CPU_MANAGER_STATE, json, empty);
    return { ...file, verified: checkCpuFile(CPU_FILE, file, allowUnverified) };
  }
  return { ...old, entries: fromVersion1(old.entries, runningContainers) };
}

/**
 * Reads the text of cpu_manager_state, of the old format too. null: there is no file, and nothing
 * is given out under the policy (default: static).
 * @throws ERR_KUBELET_STATE where the kubelet would not take it, and for a file without a checksum
 *   unless `allowUnverified`; `verified` is then false
 */
export function parseCpuManagerState(
  file: string | null,
  options: CpuManagerFormatOptions = {},
): CpuManagerState & { readonly verified: boolean } {
  if (file === null) {
    const { policy = 'static' } = options;
    return { policyName: policy, defaultCpuSet: CpuSet.EMPTY, entries: new Map(), verified: true };
  }
  const read = readCpuFile(parseJson(CPU_MANAGER_STATE, file), options);
  checkPolicy(CPU_MANAGER_STATE, read, options);
  const entries: Entries = read.entries ?? new Map();
  const defaultCpuSet = parseCpus(read.defaultCpuSet, 'those of defaultCpuSet');
  return {
    policyName: read.policyName,
    defaultCpuSet,
    entries: new Map(
      Array.from(entries, ([uid, containers]) => [
        uid,
        new Map(
          Array.from(containers ?? [], ([name, cpus]) => [
            name,
            parseCpus(cpus, `those of container ${JSON.stringify(name)} of pod ${JSON.stringify(uid)}`),
          ]),
        ),
      ]),
    ),
    verified: read.verified,
  };
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
