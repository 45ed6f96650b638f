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
import { listOf, object, text, unknownOf } from './shapes.js';

// A pod that is decoded only if it stays. Of a stream of commits most do not.
class PodRecord {
  readonly uid: string;
  readonly #given: unknown;

  constructor(given: unknown, where: string) {
    this.uid = text(object(given, where).uid, 'uid');
    this.#given = given;
  }

  decode(): PodAssignment {
    return decodePod(this.#given, this.uid);
  }
}

/** A generation, as a change of the one before. What is undefined stays. */
export interface StateChange extends Omit<Checkpoint, 'assignments' | 'refusal'> {
  /** The uids of pods that leave. */
  readonly released: readonly string[];
  /** Pods that come last, or replace one of their uid where that is. */
  readonly pods: readonly PodRecord[];
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

const CHANGE_MEMBERS = [
  ...SEAL_MEMBERS,
  ...'generation bootId writtenAt released pods settings cpus memory lastCpus named'.split(' '),
];

/** Of pods no more than their uids. @throws ERR_STATE_CORRUPT */
export function decodeChange(given: Fields): StateChange {
  if (given.line !== 'change') corrupt('a line in it is no change', given.line);
  const { released = [], pods = [] } = given;
  return {
    ...decodeHeader(given),
    released: listOf(released, 'released', text),
    pods: listOf(pods, 'pods', (item, where) => new PodRecord(item, where)),
    settings: given.settings === undefined ? undefined : decodeSettings(given.settings),
    cpus: given.cpus === undefined ? undefined : listOf(given.cpus, 'cpus', decodeIdentity),
    memory: given.memory === undefined ? undefined : bookedMemory(given.memory, 'memory'),
    lastCpus: given.lastCpus === undefined ? undefined : lastCpus(given.lastCpus, 'lastCpus'),
    named: lastCpus(given.named, 'named'),
    unknown: unknownOf(given, CHANGE_MEMBERS),
  };
}

/**
 * The checkpoint after some changes, of which only what is left in the end is looked at.
 * @throws ERR_STATE_CORRUPT where they contradict it
 */
export function applyChanges(checkpoint: Checkpoint, changes: readonly StateChange[]): Checkpoint {
  const last = changes.at(-1);
  if (!last) return checkpoint;
  let { settings, cpus, memory, lastCpus, unknown } = checkpoint.assignments;
  for (const change of changes) {
    settings = change.settings ?? settings;
    cpus = change.cpus ?? cpus;
    memory = change.memory ?? memory;
    lastCpus = change.lastCpus ?? rememberNames(lastCpus, change.named);
    if (Object.keys(change.unknown).length > 0) unknown = { ...unknown, ...change.unknown };
  }
  const pods = podsAfterChanges(checkpoint.assignments.pods, changes);
  const assignments: Assignments = { settings, cpus, pods, memory, lastCpus, unknown };
  checkHoldings(assignments);
  const { generation, bootId, writtenAt } = last;
  return { generation, bootId, writtenAt, assignments };
}

function podsAfterChanges(
  before: readonly PodAssignment[],
  changes: readonly StateChange[],
): readonly PodAssignment[] {
  if (changes.every(({ released, pods }) => released.length + pods.length === 0)) return before;
  const after: (PodAssignment | PodRecord)[] = before.slice();
  const placeOf = (uid: string) => after.findIndex((pod) => pod.uid === uid);
  for (const { released, pods } of changes) {
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
  }
  return after.map((pod) => (pod instanceof PodRecord ? pod.decode() : pod));
}
