// What one commit changes, as a line of the journal has it. Pure.
import type { Assignments, MachineSettings, NamedCpus } from '../../account/assignments.js';
import type { BookedMemory } from '../../account/booked-memory.js';
import type { CpuIdentity, PodAssignment, UnknownFields } from '../../account/pod-assignment.js';
import { rememberNames } from '../../account/pod-changes.js';
import { podListChanges, podsAfter } from '../../account/pod-list-changes.js';
import type { Fields } from '../../base/shapes.js';
import {
  bookedMemory,
  type Checkpoint,
  cpusText,
  decodeHeader,
  decodeIdentity,
  decodeSettings,
  lastCpus,
} from './checkpoint.js';
import { checkHoldings } from './holdings-check.js';
import { decodePod } from './pod-record.js';
import { encodeSettings, podsText } from './pod-text.js';
import { corrupt, SEAL_MEMBERS, textOfMembers } from './sealed-json.js';
import { listOf, text, unknownOf } from './shapes.js';

/** A generation, as a change of the one before. What is undefined stays. */
export interface StateChange extends Omit<Checkpoint, 'assignments' | 'refusal'> {
  /** The uids of pods that leave. */
  readonly released: readonly string[];
  /** Pods that come last, or replace one of their uid where that is. */
  readonly pods: readonly PodAssignment[];
  readonly settings: MachineSettings | undefined;
  readonly cpus: readonly CpuIdentity[] | undefined;
  readonly memory: BookedMemory | undefined;
  readonly lastCpus: readonly NamedCpus[] | undefined;
  /** Is remembered in addition, as {@link rememberNames} does. */
  readonly named: readonly NamedCpus[];
  readonly unknown: UnknownFields;
}

/**
 * The text of the change from one checkpoint to the next; undefined where a change cannot say it.
 */
export function changeText(
  before: Checkpoint,
  { assignments: next, ...header }: Checkpoint,
): string | undefined {
  const { assignments } = before;
  if (header.generation !== before.generation + 1 || next.unknown !== assignments.unknown) return undefined;
  const changes = podListChanges(assignments.pods, next.pods);
  const pods = podsAfter(changes);
  const texts: Record<string, string> = {};
  if (next.cpus !== assignments.cpus) texts.cpus = cpusText(next.cpus);
  if (pods.length > 0) texts.pods = podsText(pods);
  const { generation, bootId, writtenAt } = header;
  return textOfMembers({ line: 'change', generation, bootId, writtenAt }, texts, {
    ...(changes.removed.length > 0 && { released: changes.removed.map(({ uid }) => uid) }),
    ...(next.settings !== assignments.settings && { settings: encodeSettings(next.settings) }),
    ...(next.memory !== assignments.memory && { memory: next.memory }),
    ...(next.lastCpus !== assignments.lastCpus && namesBetween(assignments.lastCpus, next.lastCpus)),
  });
}

// The names that are new, where they make the one list of the other; else the whole list.
function namesBetween(before: readonly NamedCpus[], after: readonly NamedCpus[]): object {
  const known = new Set(before);
  const named = after.filter((each) => !known.has(each));
  const remembered = rememberNames(before, named);
  const isSame = remembered.length === after.length && remembered.every((each, i) => each === after[i]);
  return isSame ? { named } : { lastCpus: after };
}

/** @throws ERR_STATE_CORRUPT */
export function decodeChange(given: Fields): StateChange {
  if (given.line !== 'change') corrupt('a line in it is no change', given.line);
  const { released = [], pods = [] } = given;
  const known = {
    ...decodeHeader(given),
    released: listOf(released, 'released', text),
    pods: listOf(pods, 'pods', decodePod),
    settings: given.settings === undefined ? undefined : decodeSettings(given.settings),
    cpus: given.cpus === undefined ? undefined : listOf(given.cpus, 'cpus', decodeIdentity),
    memory: given.memory === undefined ? undefined : bookedMemory(given.memory, 'memory'),
    lastCpus: given.lastCpus === undefined ? undefined : lastCpus(given.lastCpus, 'lastCpus'),
    named: lastCpus(given.named, 'named'),
  };
  return {
    ...known,
    unknown: unknownOf(given, [...SEAL_MEMBERS, ...Object.keys(known)]),
  };
}

/** The checkpoint after a change. @throws ERR_STATE_CORRUPT where it contradicts the one before */
export function applyChange({ assignments }: Checkpoint, change: StateChange): Checkpoint {
  const { generation, bootId, writtenAt, settings, cpus, memory, unknown } = change;
  const next: Assignments = {
    settings: settings ?? assignments.settings,
    cpus: cpus ?? assignments.cpus,
    pods: podsAfterChange(assignments.pods, change),
    memory: memory ?? assignments.memory,
    lastCpus: change.lastCpus ?? rememberNames(assignments.lastCpus, change.named),
    unknown: Object.keys(unknown).length === 0 ? assignments.unknown : { ...assignments.unknown, ...unknown },
  };
  checkHoldings(next);
  return { generation, bootId, writtenAt, assignments: next };
}

function podsAfterChange(
  before: readonly PodAssignment[],
  { released, pods }: Pick<StateChange, 'released' | 'pods'>,
): readonly PodAssignment[] {
  if (released.length + pods.length === 0) return before;
  const after = before.slice();
  const placeOf = (uid: string) => after.findIndex((pod) => pod.uid === uid);
  for (const uid of released) {
    const place = placeOf(uid);
    if (place < 0) corrupt(`${uid} is released, and is not on record`, uid);
    after.splice(place, 1);
  }
  for (const pod of pods) {
    const place = placeOf(pod.uid);
    if (place < 0) after.push(pod);
    else after[place] = pod;
  }
  return after;
}
