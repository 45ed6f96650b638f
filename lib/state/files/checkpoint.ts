// The disk format of the state: Assignments <-> the text of state.json. docs/state-format.md
// describes it. Pure.
import type { Assignments, MachineSettings, NamedCpus } from '../../account/assignments.js';
import type { BookedMemory } from '../../account/booked-memory.js';
import type { CpuIdentity } from '../../account/pod-assignment.js';
import type { NumalignError } from '../../base/errors.js';
import { checkHoldings } from './holdings-check.js';
import { decodePod } from './pod-record.js';
import { encodeSettings, podsText, textOf } from './pod-text.js';
import { corrupt, type FileFormat, reading, seal, unseal } from './sealed-json.js';
import {
  cpuSet,
  flag,
  generation,
  list,
  listOf,
  nodeIds,
  object,
  orNull,
  record,
  text,
  unknownOf,
  whole,
} from './shapes.js';

export const STATE_FORMAT: FileFormat = { name: 'numalign-state', version: 1, what: 'the state file' };

/** One generation of the state, as it stands on disk. */
export interface Checkpoint {
  /** Grows by one with every commit and never goes back. */
  readonly generation: number;
  /** /proc/sys/kernel/random/boot_id when it was written: grants do not outlive a reboot. */
  readonly bootId: string;
  /** Wall-clock time in ISO 8601. */
  readonly writtenAt: string;
  readonly assignments: Assignments;
  /**
   * Why nothing may be written in its place: a newer numalign wrote it (ERR_STATE_VERSION), or it
   * was put together and owners live of whom nobody can tell what they hold (ERR_STATE_CORRUPT).
   * Not in the file.
   */
  readonly refusal?: NumalignError;
}

export function encodeCheckpoint({ assignments, refusal: _, ...header }: Checkpoint): string {
  const { unknown, settings, cpus, pods, memory, lastCpus } = assignments;
  const { format: _format, version: _version, ...unknownMembers } = unknown;
  const before = { ...unknownMembers, ...header, settings: encodeSettings(settings) };
  const known = { cpus: textOf(cpus, (rows) => rows), pods: podsText(pods) };
  return seal(STATE_FORMAT, before, known, { memory, lastCpus });
}

function bookedMemory(value: unknown, where: string): BookedMemory {
  const byNode = record(value, where, (types, at) => record(types, at, whole));
  for (const node of Object.keys(byNode)) nodeIds([Number(node)], where);
  return byNode;
}

function lastCpus(value: unknown = [], where: string): NamedCpus[] {
  return listOf(value, where, (item, at) => {
    const { name, cpus } = object(item, at);
    return { name: text(name, `${at}.name`), cpus: cpuSet(cpus, `${at}.cpus`) };
  });
}

export function decodeSettings(value: unknown): MachineSettings {
  const given = object(value, 'settings');
  const known = {
    managedCPUs: orNull(given.managedCPUs, 'settings.managedCPUs', cpuSet),
    reservedSystemCPUs: cpuSet(given.reservedSystemCPUs, 'settings.reservedSystemCPUs'),
    strictCPUReservation: flag(given.strictCPUReservation, 'settings.strictCPUReservation'),
    isolatedCPUs: orNull(given.isolatedCPUs ?? null, 'settings.isolatedCPUs', cpuSet),
    reservedMemory: bookedMemory(given.reservedMemory, 'settings.reservedMemory'),
    cgroupRoot: orNull(given.cgroupRoot ?? null, 'settings.cgroupRoot', text),
    simulated: flag(given.simulated, 'settings.simulated'),
  };
  return { ...known, unknown: unknownOf(given, known) };
}

function decodeIdentity(value: unknown, where: string): CpuIdentity {
  const row = list(value, where).map((cell) => whole(cell, where));
  if (row.length !== 4) corrupt(`${where} is not [cpu, core, package, node]`, value);
  return row as unknown as CpuIdentity;
}

/**
 * Reads a state file. Of one that a newer numalign wrote, what is known here, with a `refusal`.
 * @throws ERR_STATE_CORRUPT where the checksum or any field is wrong, ERR_STATE_VERSION where
 *   nothing of a newer file can be made out
 */
export function decodeCheckpoint(bytes: Buffer): Checkpoint {
  return reading(STATE_FORMAT, () => {
    const { members: given, newer } = unseal(STATE_FORMAT, bytes);
    if (!newer) return decodeMembers(given);
    try {
      return { ...decodeMembers(given), refusal: newer };
    } catch {
      throw newer;
    }
  });
}

function decodeMembers(value: unknown): Checkpoint {
  const given = object(value, 'the file');
  const header = {
    generation: generation(given.generation),
    bootId: text(given.bootId, 'bootId'),
    writtenAt: text(given.writtenAt, 'writtenAt'),
  };
  const body = {
    settings: decodeSettings(given.settings),
    cpus: listOf(given.cpus, 'cpus', decodeIdentity),
    pods: listOf(given.pods, 'pods', decodePod),
    memory: bookedMemory(given.memory, 'memory'),
    lastCpus: lastCpus(given.lastCpus, 'lastCpus'),
  };
  checkHoldings(body);
  const known = { format: '', version: 0, checksum: '', ...header, ...body };
  return { ...header, assignments: { ...body, unknown: unknownOf(given, known) } };
}
