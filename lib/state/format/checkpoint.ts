// One generation of the whole state, and the members of state.json that say it. docs/state-format.md
// describes them. Pure.
import type { Assignments, MachineSettings, NamedCpus } from '../../account/assignments.js';
import type { BookedMemory } from '../../account/booked-memory.js';
import type { CpuIdentity } from '../../account/pod-assignment.js';
import type { NumalignError } from '../../base/errors.js';
import type { Fields } from '../../base/shapes.js';
import type { Steps } from '../../base/steps.js';
import { holdingsSteps } from './holdings-check.js';
import { decodePod } from './pod-record.js';
import { encodeSettings, podParts, textOf } from './pod-text.js';
import { corrupt, SEAL_MEMBERS, textOfMembers } from './sealed-json.js';
import {
  cpuSet,
  flag,
  generation,
  list,
  listOf,
  listSteps,
  nodeIds,
  object,
  orNull,
  recordOf,
  text,
  unknownOf,
  whole,
} from './shapes.js';

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

/** The text of a line that says a whole checkpoint, in parts. */
export function checkpointParts({ assignments, refusal: _, ...header }: Checkpoint): string[] {
  const { unknown, settings, cpus, pods, memory, lastCpus } = assignments;
  const members = { line: 'state', ...unknown, ...header, settings: encodeSettings(settings) };
  const before = textOfMembers(members, { cpus: cpusText(cpus) });
  const after = JSON.stringify({ memory, lastCpus });
  return [before.slice(0, -1), ',"pods":[', ...podParts(pods), '],', after.slice(1)];
}

export const cpusText = (cpus: Assignments['cpus']): string => textOf(cpus, (rows) => rows);

export function bookedMemory(value: unknown, where: string): BookedMemory {
  const byNode = recordOf(value, where, (types, at) => recordOf(types, at, whole));
  for (const node of Object.keys(byNode)) nodeIds([Number(node)], where);
  return byNode;
}

export function lastCpus(value: unknown = [], where: string): NamedCpus[] {
  return listOf(value, where, (item, at) => {
    const { name, cpus } = object(item, at);
    return { name: text(name, 'name'), cpus: cpuSet(cpus, 'cpus') };
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
  return { ...known, unknown: unknownOf(given, Object.keys(known)) };
}

export function decodeIdentity(value: unknown, where: string): CpuIdentity {
  const row = list(value, where);
  for (let i = 0; i < row.length; i++) whole(row[i], where);
  if (row.length !== 4) corrupt(`${where} is not [cpu, core, package, node]`, value);
  return row as unknown as CpuIdentity;
}

/** What a line or a file says of itself, beside the assignments. */
export function decodeHeader(given: Fields): Omit<Checkpoint, 'assignments'> {
  return {
    generation: generation(given.generation),
    bootId: text(given.bootId, 'bootId'),
    writtenAt: text(given.writtenAt, 'writtenAt'),
  };
}

/** What the members say. @throws ERR_STATE_CORRUPT */
export function* checkpointSteps(given: Fields): Steps<Checkpoint> {
  const header = decodeHeader(given);
  const body = {
    settings: decodeSettings(given.settings),
    cpus: listOf(given.cpus, 'cpus', decodeIdentity),
    pods: yield* listSteps(given.pods, 'pods', decodePod),
    memory: bookedMemory(given.memory, 'memory'),
    lastCpus: lastCpus(given.lastCpus, 'lastCpus'),
  };
  yield* holdingsSteps(body);
  const known = [...SEAL_MEMBERS, ...Object.keys(header), ...Object.keys(body)];
  return { ...header, assignments: { ...body, unknown: unknownOf(given, known) } };
}
