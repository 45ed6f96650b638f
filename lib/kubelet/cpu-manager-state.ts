// The file of the kubelet's CPU Manager.
import { NumalignError } from '../base/errors.js';
import { CpuSet } from '../machine/cpu-set.js';
import type { GoJson } from './go-json.js';
import { type GoType, map, struct, text, textKey } from './go-value.js';
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

/** The names of the files in the kubelet's folder. */
export const CPU_MANAGER_STATE = 'cpu_manager_state';

export interface CpuManagerState {
  /** `static` or `none`. */
  readonly policyName: string;
  /** The shared pool. */
  readonly defaultCpuSet: CpuSet;
  /** Exclusive CPUs by pod uid and container name. */
  readonly entries: ReadonlyMap<string, ReadonlyMap<string, CpuSet>>;
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

interface CpuFile<Entry> extends Header {
  readonly defaultCpuSet: string;
  readonly entries: ReadonlyMap<string, Entry> | null;
}

export type ByContainer<T> = ReadonlyMap<string, T> | null;

function cpuFile<Entry>(entry: GoType<Entry>): GoType<CpuFile<Entry>> {
  return struct<CpuFile<Entry>>('state.CPUManagerCheckpoint', {
    policyName,
    defaultCpuSet: { go: 'DefaultCPUSet', type: text() },
    entries: { go: 'Entries', type: map(textKey(), entry), omitEmpty: true },
    checksum,
  });
}

const CPU_FILE_V1 = cpuFile(text());
export const CPU_FILE = cpuFile(map(textKey(), text()));

export function encodeCpu({
  policyName,
  defaultCpuSet,
  entries,
}: CpuManagerState): CpuFile<ByContainer<string>> {
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

export type Entries = ReadonlyMap<string, ByContainer<string>>;
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
