// CpuManagerState: the file of the kubelet's CPU Manager.
import { NumalignError } from '../base/errors.js';
import { CPU_MANAGER_STATE } from '../base/kubelet-features.js';
import { CpuSet } from '../machine/cpu-set.js';
import type { GoJson } from './go-json.js';
import { cpuSet, type GoType, map, struct, text, textKey } from './go-value.js';
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

/** The content of cpu_manager_state. */
export interface CpuManagerState {
  /** `static` or `none`. */
  readonly policyName: string;
  /** The shared pool. */
  readonly defaultCpuSet: CpuSet;
  /** Exclusive CPUs by pod uid and container name. */
  readonly entries: ReadonlyMap<string, ReadonlyMap<string, CpuSet>>;
  /**
   * CPUs of pods as a whole, by pod uid. Left out: the file of a kubelet without the feature gate
   * PodLevelResourceManagers.
   */
  readonly podEntries?: ReadonlyMap<string, { readonly cpuSet: CpuSet }>;
}

/** The options of {@link parseCpuManagerState}. */
export interface CpuManagerFormatOptions extends KubeletFormatOptions {
  /**
   * Pod uid and container name by container id, for files of the first version, which have only
   * container ids.
   * @default none
   */
  readonly runningContainers?: Readonly<Record<string, readonly [podUid: string, containerName: string]>>;
}

interface CpuFile<Entry> extends Header {
  readonly defaultCpuSet: string;
  readonly entries: ReadonlyMap<string, Entry> | null;
}

interface PodEntry {
  readonly cpuSet: CpuSet;
}

interface CpuFileWithPods extends CpuFile<ByContainer<string>> {
  readonly podEntries: ReadonlyMap<string, PodEntry> | null;
}

export type ByContainer<T> = ReadonlyMap<string, T> | null;

const CHECKPOINT = 'state.CPUManagerCheckpoint';

const FIELDS = { policyName, defaultCpuSet: { go: 'DefaultCPUSet', type: text() } };

const entriesField = <Entry>(entry: GoType<Entry>) => ({
  go: 'Entries',
  type: map(textKey(), entry),
  omitEmpty: true,
});

const FIELDS_V2 = { ...FIELDS, entries: entriesField(map(textKey(), text())) };

const POD_ENTRY = struct<PodEntry>('state.PodCPUAssignment', {
  cpuSet: { go: 'CPUSet', type: cpuSet, omitEmpty: true },
});

const CPU_FILE_V1 = struct<CpuFile<string>>(
  CHECKPOINT,
  { ...FIELDS, entries: entriesField(text()), checksum },
  NEWER_MEMBERS,
);
export const CPU_FILE = struct<CpuFile<ByContainer<string>>>(
  CHECKPOINT,
  { ...FIELDS_V2, checksum },
  NEWER_MEMBERS,
);
const WITH_PODS = { ...FIELDS_V2, podEntries: podEntriesField(POD_ENTRY, 'state.PodCPUAssignments') };
export const CPU_FILE_V3 = struct<CpuFileWithPods>(CHECKPOINT, { ...WITH_PODS, checksum }, NEWER_MEMBERS);
const CPU_DATA = struct<Omit<CpuFileWithPods, 'checksum'>>(CHECKPOINT, WITH_PODS);

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

/**
 * Returns the text of cpu_manager_state as the kubelet writes it: one line without a newline. With
 * `podEntries`, also empty ones, it is the version of the feature gate PodLevelResourceManagers; for
 * v1.37 it is the version with `data`.
 */
export function formatCpuManagerState(state: CpuManagerState, options: KubeletWriteOptions = {}): string {
  const file = encodeCpu(state);
  const { podEntries } = state;
  if (hasData(options))
    return printWithData(print(CPU_FILE, file), CPU_DATA, { ...file, podEntries: podEntries ?? null });
  return podEntries ? print(CPU_FILE_V3, { ...file, podEntries }) : print(CPU_FILE, file);
}

function parseCpus(list: string, what: string): CpuSet {
  try {
    return CpuSet.parse(list);
  } catch (cause) {
    return unusable(CPU_MANAGER_STATE, `${what} are not a list of CPUs (${(cause as Error).message})`, {
      value: list,
      valid: 'a list such as 0-3,8',
      cause,
    });
  }
}

function fromVersion1(
  entries: CpuFile<string>['entries'],
  running: CpuManagerFormatOptions['runningContainers'],
) {
  const pods = new Map<string, Map<string, string>>();
  for (const [id, cpus] of entries ?? []) {
    const container = running && Object.hasOwn(running, id) ? running[id] : undefined;
    if (!container) {
      const message = `it names container ${JSON.stringify(id)}, which is not a running container`;
      unusable(CPU_MANAGER_STATE, message, { value: id, valid: Object.keys(running ?? {}) });
    }
    const [uid, name] = container;
    pods.set(uid, (pods.get(uid) ?? new Map()).set(name, cpus));
  }
  return pods;
}

const EMPTY = { policyName: '', defaultCpuSet: '', entries: new Map<string, never>(), checksum: 0n };

// Of the older formats, the kubelet tries the oldest first, until v1.37, which cannot read it. A file
// without entries may have either format.
function readOlderFile(
  json: GoJson,
  options: CpuManagerFormatOptions,
): Verified<CpuFile<ByContainer<string>>> {
  const file = { name: CPU_MANAGER_STATE, json, empty: EMPTY };
  if (hasData(options)) return readVerified(CPU_FILE, file, options);
  let old: Verified<CpuFile<string>>;
  try {
    old = readVerified(CPU_FILE_V1, file, options);
  } catch (error) {
    if (!(error instanceof NumalignError)) throw error;
    return readVerified(CPU_FILE, file, options);
  }
  return { ...old, entries: fromVersion1(old.entries, options.runningContainers) };
}

/**
 * Reads the text of cpu_manager_state, also of the old format. null: no file, so nothing is given
 * out under the policy (default: static).
 * @throws ERR_KUBELET_STATE if the kubelet would refuse it, for members that no known kubelet
 *   writes, and for a file without a checksum; with `allowUnverified` the result has `verified:
 *   false` instead
 */
export function parseCpuManagerState(
  file: string | null,
  options: CpuManagerFormatOptions = {},
): Verified<CpuManagerState> {
  const { policy = 'static', podLevelResourceManagers } = options;
  const none = podLevelResourceManagers && { podEntries: new Map() };
  if (file === null) {
    return { policyName: policy, defaultCpuSet: CpuSet.EMPTY, entries: new Map(), ...none, verified: true };
  }
  const { policyName, defaultCpuSet, entries, podEntries, verified } = readManagerFile(
    {
      name: CPU_MANAGER_STATE,
      newest: CPU_FILE_V3,
      empty: { ...EMPTY, podEntries: new Map() },
      readOlder: (json) => readOlderFile(json, options),
    },
    file,
    options,
  );
  return {
    policyName,
    defaultCpuSet: parseCpus(defaultCpuSet, 'those of defaultCpuSet'),
    entries: mapValues(entries, (containers, uid) =>
      mapValues(containers, (cpus, name) =>
        parseCpus(cpus, `those of container ${JSON.stringify(name)} of pod ${JSON.stringify(uid)}`),
      ),
    ),
    ...(podLevelResourceManagers && { podEntries: podEntries ?? new Map() }),
    verified,
  };
}
