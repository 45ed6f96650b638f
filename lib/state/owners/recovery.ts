// Recovery: rebuilds the state from the last good generation and the claims of living owners. Pure.
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
import type { FoundOwners } from '../files/owner-claims.js';
import type { FoundState } from '../files/state-files.js';
import type { Checkpoint } from '../format/checkpoint.js';
import { clashOf } from '../format/holdings-check.js';
import { remainsOf } from '../format/journal.js';
import type { OwnerFile } from '../format/owner-file.js';
import { kubeletText, podText } from '../format/pod-text.js';

/** The remains of a state. */
export interface Clues {
  /** The contents of the state file, and of its copy. */
  readonly found: FoundState;
  readonly previous: FoundState;
  /** The last good generation found. */
  readonly base: Checkpoint | undefined;
  readonly owners: FoundOwners;
  /** The highest generation on record as committed. */
  readonly highest: number;
}

/**
 * The last good generation in the state file, its copy, or `inMemory`, which this process read
 * before. The lines of both files together may show a later one than each file.
 */
export function lastGood(
  found: FoundState,
  previous: FoundState,
  readPrevious: () => Buffer | undefined,
  inMemory?: Checkpoint,
): Checkpoint | undefined {
  const good = [found, previous].flatMap((file) => (file.kind === 'missing' ? [] : (file.checkpoint ?? [])));
  const damagedBytes = found.kind === 'damaged' ? found.bytes : undefined;
  const copy = previous.kind === 'damaged' ? previous.bytes : readPrevious();
  const parts = found.kind === 'good' ? [] : [[copy], [damagedBytes], [copy, damagedBytes]];
  const remains = parts.flatMap((files) => remainsOf(files.filter((bytes) => bytes !== undefined)) ?? []);
  return [...remains, ...good, ...(inMemory ? [inMemory] : [])].reduce<Checkpoint | undefined>(
    (best, each) => (best && best.generation >= each.generation ? best : each),
    undefined,
  );
}

/** Says what a state lacks although it looks whole; undefined if nothing shows. */
export function flawOf(
  { generation, assignments: { pods, kubelet } }: Checkpoint,
  { living, unknown }: FoundOwners,
) {
  const highest = highestNamed({ living, unknown });
  if (highest > generation) return `it is older than generation ${highest}, which a living owner names`;
  const byUid = new Map(pods.map((pod) => [pod.uid, pod]));
  const isOnRecord = (pod: PodAssignment) => {
    const record = byUid.get(pod.uid);
    return record !== undefined && podText(record) === podText(pod);
  };
  // A process's file of this generation matches it, or has later claims, which were committed after
  // it. This does not hold for other owners: the process that wrote their file may have ended
  // before the commit.
  const isKept = (record: OwnerFile['kubelet']) =>
    record === null || (kubelet !== null && kubeletText(kubelet) === kubeletText(record));
  const claims = living.find(
    (file) =>
      file.kind === 'process' &&
      file.generation === generation &&
      !(file.pods.every(isOnRecord) && isKept(file.kubelet)),
  );
  if (claims) return `it lacks a later commit for the living owner ${claims.uuid}`;
  const missing = unknown.find(
    ({ uuid, isFileLost }) =>
      isFileLost &&
      !pods.some(({ owner }) => owner.uuid.startsWith(uuid)) &&
      !kubelet?.keeper.uuid.startsWith(uuid),
  );
  return missing && `it does not know the living owner ${missing.uuid}…, whose file was removed or replaced`;
}

const highestNamed = ({ living, unknown }: Pick<FoundOwners, 'living' | 'unknown'>) =>
  Math.max(0, ...living.map(({ generation }) => generation), ...unknown.map(({ since }) => since));

/** True if there never was a state, or a user removed all of it. */
export function isUnused({ found, previous, base, owners }: Clues): boolean {
  const isMissing = found.kind === 'missing' && previous.kind === 'missing';
  return isMissing && !base && owners.living.length === 0 && owners.unknown.length === 0;
}

/** A generation higher than any that a process may have read. */
export function generationAfter({ found, previous, base, owners, highest }: Clues): number {
  const damaged = [found, previous].map((file) => (file.kind === 'damaged' ? file.generation : 0));
  const named = Math.max(owners.latest?.generation ?? 0, highestNamed(owners));
  // The generation after the good one is lost.
  return Math.max(...damaged, named, highest, (base?.generation ?? 0) + 1) + 1;
}

/**
 * Rebuilds the state as far as possible; undefined if nothing is known and nothing is claimed.
 * Grants of an earlier boot stay if no owner has a claim in this boot, and are void otherwise.
 * @throws ERR_STATE_CORRUPT, ERR_STATE_VERSION if nothing is known and a living owner may hold
 *   something
 */
export function rebuild(
  clues: Omit<Clues, 'highest'>,
  bootId: string,
  totalOn: TotalOn,
): Omit<Checkpoint, 'generation' | 'writtenAt'> | undefined {
  const { base, owners } = clues;
  const { latest } = owners;
  const isLater = latest !== undefined && latest.generation > (base?.generation ?? -1);
  const later = begunAgain(clues);
  const settings = isLater ? latest.settings : (later ?? base?.assignments)?.settings;
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
  const previous = base?.assignments ?? emptyAssignments(settings);
  const assignments = isVoid ? withoutPods(previous) : previous;
  const kubelet = kubeletOf(base, owners) ?? later?.kubelet ?? assignments.kubelet;
  const before = { ...assignments, settings, kubelet };
  const { pods, rivals } = choosePods(before.pods, base, owners);
  const memory = bookAgain(before, pods, totalOn);
  const refusal = base?.refusal ?? unknown?.error ?? refusalOf(pods, rivals, memory);
  // A grant that ends leaves its last CPUs on record by name.
  const uids = new Set(before.pods.map(({ uid }) => uid));
  for (const { uid } of pods) uids.delete(uid);
  const { lastCpus } = removePods(before, uids);
  return { bootId, assignments: { ...before, pods, memory, lastCpus }, ...(refusal && { refusal }) };
}

// A state that began again after `base`, which only this process knows: its generations are lower, but
// its time is later.
function begunAgain({ found, previous, base }: Pick<Clues, 'found' | 'previous' | 'base'>) {
  const isLater = ({ writtenAt }: Checkpoint) => base !== undefined && writtenAt > base.writtenAt;
  const [later] = [found, previous]
    .flatMap((file) => (file.kind !== 'missing' && file.checkpoint ? file.checkpoint : []))
    .filter(isLater)
    .sort((a, b) => b.generation - a.generation);
  return later?.assignments;
}

type Written = Pick<Checkpoint, 'generation' | 'writtenAt'>;
// The time of no state.
const NEVER: Written = { generation: 0, writtenAt: '' };

// The keeper writes the record into its own file before it is in the state. A process that began to
// keep it after the state was written does so in a state that began again.
function kubeletOf({ generation, writtenAt }: Written = NEVER, { living }: FoundOwners) {
  const files = living.filter(
    ({ kubelet, ...file }) =>
      kubelet !== null && (file.generation >= generation || kubelet.since > writtenAt),
  );
  const [latest] = files.sort((a, b) => b.generation - a.generation);
  return latest?.kubelet;
}

/**
 * Chooses the grants that hold. A living owner's file matched the state whenever it was written,
 * and a grant is in the file before it is in the state. So a grant on record stays if its owner's
 * file has it. Any other counts if its claim is of the recorded generation or later: an earlier
 * claim is on record, or was given back.
 */
function choosePods(
  recorded: readonly PodAssignment[],
  { generation, writtenAt }: Written = NEVER,
  { living, unknown }: FoundOwners,
) {
  const claims = new Map<string, Claim>();
  const rivals: [Claim, Claim][] = [];
  for (const file of living) {
    for (const pod of file.pods) {
      const before = recorded.find(({ uid }) => uid === pod.uid);
      const isOnRecord = before !== undefined && isHeldBy(before, file.uuid);
      // What was admitted later was not given back before: the state has begun again meanwhile.
      const isEarlier = file.generation < generation && pod.admittedAt <= writtenAt;
      if (isEarlier && !isOnRecord) continue;
      const claim: Claim = { pod: isEarlier ? before! : pod, file, isOnRecord };
      const other = claims.get(pod.uid);
      if (!other || isNewerClaim(claim, other)) claims.set(pod.uid, claim);
      else if (!isNewerClaim(other, claim)) rivals.push([other, claim]);
    }
  }
  const isUnknown = (uuid: string) => unknown.some((owner) => uuid.startsWith(owner.uuid));
  const mayStay = ({ owner, formerOwner }: PodAssignment) =>
    isUnknown(owner.uuid) || isUnknown(formerOwner ?? owner.uuid);
  const stay = recorded.flatMap((pod) => claims.get(pod.uid)?.pod ?? (mayStay(pod) ? pod : []));
  const newPods = [...claims.values()]
    .map(({ pod }) => pod)
    .filter(({ uid }) => !recorded.some((pod) => pod.uid === uid));
  const byTime = (a: PodAssignment, b: PodAssignment) => (a.admittedAt < b.admittedAt ? -1 : 1);
  // A former owner that lives, and whose file no longer has the grant, has left its CPUs.
  const hasLeft = (uuid: string, uid: string) =>
    living.some((file) => file.uuid === uuid && !file.pods.some((pod) => pod.uid === uid));
  const pods = [...stay, ...newPods.sort(byTime)].map((pod) =>
    pod.formerOwner !== null && hasLeft(pod.formerOwner, pod.uid) ? { ...pod, formerOwner: null } : pod,
  );
  return { pods, rivals };
}

interface Claim {
  readonly pod: PodAssignment;
  readonly file: OwnerFile;
  readonly isOnRecord: boolean;
}

// A process that takes over a grant claims it before the state says so. The owner before may have
// written its file in the same generation.
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

function refuse(flaw: string, value: unknown): NumalignError {
  const message = `the state is damaged and cannot be recovered: ${flaw}; numalign grants nothing until one of them ends`;
  return new NumalignError('ERR_STATE_CORRUPT', message, { value });
}

/**
 * Releases the blocks of pods that were dropped. Books the blocks of added pods where there is
 * room, or else beyond it.
 */
function bookAgain(
  { pods, memory, settings }: Assignments,
  next: readonly PodAssignment[],
  totalOn: TotalOn,
): BookedMemory {
  const oldBlocks = memoryBlocks(pods.filter((pod) => !next.includes(pod)));
  const newBlocks = memoryBlocks(next.filter((pod) => !pods.includes(pod)));
  let booked = oldBlocks.reduce(releaseMemory, memory);
  const allocatableOn = (node: number, type: string) =>
    totalOn(node, type) - bookedOn(settings.reservedMemory, node, type);
  // The block was granted before.
  for (const block of newBlocks) booked = bookHeldMemory(booked, block, allocatableOn);
  return booked;
}
