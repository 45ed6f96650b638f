// Recovery: the state put together again from the last good generation and what living owners'
// files claim. Pure.
import { type Assignments, emptyAssignments, isHeldBy } from '../../account/assignments.js';
import {
  type BookedMemory,
  bookedOn,
  bookHeldMemory,
  memoryBlocks,
  releaseMemory,
  type TotalOn,
} from '../../account/booked-memory.js';
import { bookingFlaw } from '../../account/memory-of-pods.js';
import type { PodAssignment } from '../../account/pod-assignment.js';
import { removePods, withoutPods } from '../../account/pod-changes.js';
import { NumalignError } from '../../base/errors.js';
import type { FoundOwners, FoundState } from '../files/state-files.js';
import type { Checkpoint } from '../format/checkpoint.js';
import { clashOf } from '../format/holdings-check.js';
import { remainsOf } from '../format/journal.js';
import type { OwnerFile } from '../format/owner-file.js';
import { kubeletText, podText } from '../format/pod-text.js';

/** What is left of a state. */
export interface Clues {
  /** In place of the state's file, and of the one before. */
  readonly found: FoundState;
  readonly previous: FoundState;
  /** The last good generation that is known. */
  readonly base: Checkpoint | undefined;
  readonly owners: FoundOwners;
  /** The highest generation that was committed, as far as that is on record. */
  readonly highest: number;
}

/**
 * The last good generation in the state's file and the one before it, or `known`: one that this
 * process has read before. What the lines of both say together may be later than what each says.
 */
export function lastGood(
  found: FoundState,
  previous: FoundState,
  readPrevious: () => Buffer | undefined,
  known?: Checkpoint,
): Checkpoint | undefined {
  const good = [found, previous].flatMap((file) => (file.kind === 'missing' ? [] : (file.checkpoint ?? [])));
  const own = found.kind === 'damaged' ? found.bytes : undefined;
  const copied = previous.kind === 'damaged' ? previous.bytes : readPrevious();
  const parts = found.kind === 'good' ? [] : [[copied], [own], [copied, own]];
  const remains = parts.flatMap((files) => remainsOf(files.filter((bytes) => bytes !== undefined)) ?? []);
  return [...remains, ...good, ...(known ? [known] : [])].reduce<Checkpoint | undefined>(
    (best, each) => (best && best.generation >= each.generation ? best : each),
    undefined,
  );
}

/**
 * What a state that says it is whole does not have, in words; undefined where nothing of the kind
 * is known.
 */
export function flawOf(
  { generation, assignments: { pods, kubelet } }: Checkpoint,
  { living, unknown }: FoundOwners,
) {
  const seen = Math.max(0, ...living.map((file) => file.generation));
  if (seen > generation) return `it is older than generation ${seen}, of which a living owner has written`;
  const byUid = new Map(pods.map((pod) => [pod.uid, pod]));
  const isOnRecord = (pod: PodAssignment) => {
    const recorded = byUid.get(pod.uid);
    return recorded !== undefined && podText(recorded) === podText(pod);
  };
  // Its owner was brought in step with this generation or has gone on: what it has more was
  // committed since. Not so of owners that are no processes: what has written their files may have
  // ended before the commit.
  const isKept = (record: OwnerFile['kubelet']) =>
    record === null || (kubelet !== null && kubeletText(kubelet) === kubeletText(record));
  const claims = living.find(
    (file) =>
      file.kind === 'process' &&
      file.generation === generation &&
      !(file.pods.every(isOnRecord) && isKept(file.kubelet)),
  );
  if (claims) return `it has not what was committed for the living owner ${claims.uuid} since`;
  const lost = unknown.find(
    ({ uuid, isFileMissing }) =>
      isFileMissing &&
      !pods.some(({ owner }) => owner.uuid.startsWith(uuid)) &&
      !kubelet?.keeper.uuid.startsWith(uuid),
  );
  return lost && `it does not know the living owner ${lost.uuid}…, whose file was removed`;
}

/** Whether there never was a state, or somebody has cleared it away. */
export function isUnused({ found, previous, base, owners }: Clues): boolean {
  const isGone = found.kind === 'missing' && previous.kind === 'missing';
  return isGone && !base && owners.living.length === 0 && owners.unknown.length === 0;
}

/** A generation that nobody can have seen yet. */
export function generationAfter({ found, previous, base, owners, highest }: Clues): number {
  const seen = [found, previous].map((file) => (file.kind === 'damaged' ? file.generation : 0));
  const written = [owners.latest, ...owners.living].map((file) => file?.generation ?? 0);
  // Of the good generation the next has been lost.
  return Math.max(...seen, ...written, highest, (base?.generation ?? 0) + 1) + 1;
}

/**
 * The state as far as it is known; undefined where nothing is known of it, and nothing is claimed.
 * Grants of an earlier boot are left as they are where nobody has a claim in this one, and are void
 * otherwise.
 * @throws ERR_STATE_CORRUPT, ERR_STATE_VERSION where nothing is known and somebody lives who may
 *   know
 */
export function rebuild(
  { base, owners }: Clues,
  bootId: string,
  totalOn: TotalOn,
): Omit<Checkpoint, 'generation' | 'writtenAt'> | undefined {
  const { latest } = owners;
  const isLater = latest !== undefined && latest.generation > (base?.generation ?? -1);
  const settings = isLater ? latest.settings : base?.assignments.settings;
  const [unknown] = owners.unknown;
  if (!settings) {
    if (unknown) throw unknown.error;
    return undefined;
  }
  const isVoid = base !== undefined && base.bootId !== bootId;
  if (isVoid && owners.living.length === 0) {
    const refusal = base.refusal ?? unknown?.error;
    return { bootId: base.bootId, assignments: base.assignments, ...(refusal && { refusal }) };
  }
  const recorded = base?.assignments ?? emptyAssignments(settings);
  const kept = isVoid ? withoutPods(recorded) : recorded;
  const before = { ...kept, settings, kubelet: kubeletOf(kept, base?.generation ?? 0, owners) };
  const { pods, rivals } = choosePods(before.pods, base?.generation ?? 0, owners);
  const memory = bookAgain(before, pods, totalOn);
  const refusal = base?.refusal ?? unknown?.error ?? refusalOf(pods, rivals, memory);
  // What is remembered by name when a grant ends.
  const gone = before.pods.filter((pod) => !pods.some(({ uid }) => uid === pod.uid)).map(({ uid }) => uid);
  const { lastCpus } = removePods(before, new Set(gone));
  return { bootId, assignments: { ...before, pods, memory, lastCpus }, ...(refusal && { refusal }) };
}

// The process that keeps it writes it into its own file before it is on record.
function kubeletOf({ kubelet }: Assignments, generation: number, { living }: FoundOwners) {
  const files = living.filter((file) => file.kubelet !== null && file.generation >= generation);
  const [latest] = files.sort((a, b) => b.generation - a.generation);
  return latest ? latest.kubelet : kubelet;
}

/**
 * A living owner's file was brought in step with the state whenever it was written, and a grant is
 * in it before it is on record. So of grants on record those stay that their owner's file still
 * has. Of those that are not, one counts that was claimed at the recorded generation or later: had
 * it been claimed before, it would be on record, or was given back.
 */
function choosePods(
  recorded: readonly PodAssignment[],
  generation: number,
  { living, unknown }: FoundOwners,
) {
  const claims = new Map<string, Claim>();
  const rivals: [Claim, Claim][] = [];
  for (const file of living) {
    for (const pod of file.pods) {
      const before = recorded.find(({ uid }) => uid === pod.uid);
      const isOnRecord = before !== undefined && isHeldBy(before, file.uuid);
      if (file.generation < generation && !isOnRecord) continue;
      const claim: Claim = { pod: file.generation < generation ? before! : pod, file, isOnRecord };
      const other = claims.get(pod.uid);
      if (!other || isNewerClaim(claim, other)) claims.set(pod.uid, claim);
      else if (!isNewerClaim(other, claim)) rivals.push([other, claim]);
    }
  }
  const isUnknown = (uuid: string) => unknown.some((owner) => uuid.startsWith(owner.uuid));
  const mayStay = ({ owner, formerOwner }: PodAssignment) =>
    isUnknown(owner.uuid) || isUnknown(formerOwner ?? owner.uuid);
  const stay = recorded.flatMap((pod) => claims.get(pod.uid)?.pod ?? (mayStay(pod) ? pod : []));
  const added = [...claims.values()]
    .map(({ pod }) => pod)
    .filter(({ uid }) => !recorded.some((pod) => pod.uid === uid));
  const byTime = (a: PodAssignment, b: PodAssignment) => (a.admittedAt < b.admittedAt ? -1 : 1);
  // Whoever handed a grant over and lives, and whose file does not have it any more, has left its
  // CPUs.
  const hasLeft = (uuid: string, uid: string) =>
    living.some((file) => file.uuid === uuid && !file.pods.some((pod) => pod.uid === uid));
  const pods = [...stay, ...added.sort(byTime)].map((pod) =>
    pod.formerOwner !== null && hasLeft(pod.formerOwner, pod.uid) ? { ...pod, formerOwner: null } : pod,
  );
  return { pods, rivals };
}

interface Claim {
  readonly pod: PodAssignment;
  readonly file: OwnerFile;
  readonly isOnRecord: boolean;
}

// Who takes a grant over claims it before the state says so; its owner until then may have written
// its own file in the same generation.
function isNewerClaim(a: Claim, b: Claim): boolean {
  return (
    a.file.generation > b.file.generation ||
    (a.file.generation === b.file.generation && b.isOnRecord && !a.isOnRecord)
  );
}

function refusalOf(
  pods: readonly PodAssignment[],
  rivals: readonly (readonly [Claim, Claim])[],
  memory: BookedMemory,
): NumalignError | undefined {
  const [rival] = rivals;
  const clash = rival
    ? { what: `grant ${rival[0].pod.uid}`, pods: rival.map(({ pod }) => pod) }
    : clashOf(pods);
  if (clash) {
    const files = clash.pods.map(({ owner }) => `owners/${owner.uuid}`);
    return refuse(`${clash.what} is claimed by both ${files.join(' and ')}`, files);
  }
  const flaw = bookingFlaw(memory, pods);
  return flaw === undefined ? undefined : refuse(flaw, memory);
}

function refuse(message: string, value: unknown): NumalignError {
  return new NumalignError(
    'ERR_STATE_CORRUPT',
    `the state is damaged and cannot be put together: ${message}; nothing is granted before one of them has ended`,
    { value },
  );
}

/**
 * The blocks of pods that have gone are given back, those of new ones booked where there is room,
 * and in any case.
 */
function bookAgain(
  { pods, memory, settings }: Assignments,
  next: readonly PodAssignment[],
  totalOn: TotalOn,
): BookedMemory {
  const gone = memoryBlocks(pods.filter((pod) => !next.includes(pod)));
  const added = memoryBlocks(next.filter((pod) => !pods.includes(pod)));
  let booked = gone.reduce(releaseMemory, memory);
  const allocatableOn = (node: number, type: string) =>
    totalOn(node, type) - bookedOn(settings.reservedMemory, node, type);
  // It was granted once.
  for (const block of added) booked = bookHeldMemory(booked, block, allocatableOn);
  return booked;
}
