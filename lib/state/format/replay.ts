// Replay: applies the lines of a journal one after the other. Decodes only the final result. Pure.
import type { NamedCpus } from '../../account/assignments.js';
import type { PodAssignment } from '../../account/pod-assignment.js';
import { rememberNames } from '../../account/pod-changes.js';
import type { Fields } from '../../base/shapes.js';
import type { Steps } from '../../base/steps.js';
import type { Words } from '../../base/words.js';
import { type Checkpoint, checkpointSteps } from './checkpoint.js';
import { decodePod } from './pod-record.js';
import { podsOfRows } from './pod-rows.js';
import { corrupt } from './sealed-json.js';
import { generation, list, listOf, object, text } from './shapes.js';

// The CPUs may still be text.
type Named = Pick<NamedCpus, 'name'>;

// Takes some tenths of a millisecond.
const PODS_AT_ONCE = 64;

export class Replay {
  readonly #isLenient: boolean;
  #before: Checkpoint | undefined;
  // The pods of #before that no line has released.
  #base: readonly PodAssignment[] = [];
  // The pods of the lines by uid. They come last, or replace the kept pod with their uid.
  #pods = new Map<string, Fields | PodAssignment>();
  // Those of them that are still to be decoded.
  readonly #raw = new Set<unknown>();
  // The other members. #lastCpus replaces `lastCpus` once a line adds names.
  #members: Fields | undefined;
  #lastCpus: readonly Named[] | undefined;
  #generation = 0;
  #isBroken = false;

  /**
   * `before`: the lines follow this checkpoint; without it they begin with a whole state.
   * `isLenient`: lines may be missing, and the lines after a gap are ignored.
   */
  constructor({ before, isLenient = false }: { before?: Checkpoint; isLenient?: boolean } = {}) {
    this.#isLenient = isLenient;
    if (!before) return;
    const { assignments, refusal: _, ...header } = before;
    const { settings, cpus, pods, memory, lastCpus, kubelet, quiet } = assignments;
    this.#before = before;
    this.#base = pods;
    this.#members = { ...header, settings, cpus, memory, kubelet, quiet };
    this.#lastCpus = lastCpus;
    this.#generation = before.generation;
  }

  get generation(): number {
    return this.#generation;
  }

  get isEmpty(): boolean {
    return this.#members === undefined;
  }

  /** Applies the line of a whole state or of a change. @throws ERR_STATE_CORRUPT */
  take(members: Fields): void {
    if (members.line === 'state') this.#begin(members);
    else if (members.line !== 'change') corrupt('a line of it has an unknown kind');
    else if (this.#members) this.#change(members, this.#members);
    else if (!this.#isLenient) corrupt('it does not begin with a whole state');
  }

  #begin(members: Fields): void {
    const begin = generation(members.generation);
    // The replay is at this generation or later.
    if (this.#isLenient && begin < this.#generation) return;
    this.#generation = begin;
    const pods = this.#byUid(members.pods);
    this.#before = undefined;
    this.#base = [];
    this.#pods = new Map(pods);
    if (this.#pods.size < pods.length) corrupt('a grant is in it twice');
    this.#members = members;
    this.#lastCpus = undefined;
    this.#isBroken = false;
  }

  /**
   * Applies lines that the addon has merged: see {@link MergedLines}.
   * @throws ERR_STATE_CORRUPT, ERR_STATE_VERSION
   */
  *takeMerged(change: string, words: Words): Steps<void> {
    const { gone, pods, ...members } = JSON.parse(change);
    for (const uid of gone) this.#pods.delete(uid);
    this.#remove(gone);
    this.#apply(members, this.#members ?? {});
    let made = 0;
    for (const pod of podsOfRows(pods, words)) {
      this.#pods.set(pod.uid, pod);
      if (++made % PODS_AT_ONCE === 0) yield;
    }
  }

  #change(change: Fields, members: Fields): void {
    const next = generation(change.generation);
    if (this.#isLenient && next <= this.#generation) return;
    this.#isBroken ||= next !== this.#generation + 1;
    if (this.#isBroken && !this.#isLenient) corrupt(`generation ${next} follows ${this.#generation}`);
    if (this.#isBroken) {
      if (change.settings !== undefined) this.#members = { ...members, settings: change.settings };
      return;
    }
    this.#apply(change, members);
  }

  #apply({ released = [], pods = [], named = [], ...others }: Fields, members: Fields): void {
    this.#release(listOf(released, 'released', text));
    for (const [uid, pod] of this.#byUid(pods)) this.#pods.set(uid, pod);
    this.#members = { ...members, ...others };
    if (others.lastCpus !== undefined) this.#lastCpus = undefined;
    else if (list(named, 'named').length > 0) {
      const before = this.#lastCpus ?? names(members.lastCpus, 'lastCpus');
      this.#lastCpus = rememberNames(before, names(named, 'named'));
    }
    this.#generation = generation(others.generation);
  }

  #byUid(pods: unknown): [string, Fields][] {
    return listOf(pods, 'pods', (item, where) => {
      const pod = object(item, where);
      this.#raw.add(pod);
      return [text(pod.uid, 'uid'), pod];
    });
  }

  #release(uids: readonly string[]): void {
    const others = uids.filter((uid) => !this.#pods.delete(uid));
    const removed = this.#remove(uids);
    const known = new Set(removed.map(({ uid }) => uid));
    const isTwice = new Set(uids).size < uids.length;
    const unknown = isTwice
      ? uids.find((uid, i) => uids.indexOf(uid) < i)
      : others.find((uid) => !known.has(uid));
    if (unknown !== undefined) corrupt(`${unknown} is released, and is not on record`, unknown);
  }

  // Takes pods from the base. Returns those that were there.
  #remove(uids: readonly string[]): readonly PodAssignment[] {
    if (uids.length === 0) return [];
    const left = new Set(uids);
    const removed = this.#base.filter(({ uid }) => left.has(uid));
    if (removed.length > 0) this.#base = this.#base.filter(({ uid }) => !left.has(uid));
    return removed;
  }

  /** Decodes the result. @throws ERR_STATE_CORRUPT */
  *checkpoint(): Steps<Checkpoint> {
    const before = this.#before;
    if (before?.generation === this.#generation) return before;
    const lastCpus = this.#lastCpus ?? this.#members?.lastCpus;
    const members = { ...this.#members, pods: [...this.#pods.values()], lastCpus };
    const kept = before && { ...before.assignments, pods: this.#base };
    const decode = (pod: unknown, where: string) =>
      this.#raw.has(pod) ? decodePod(pod, where) : (pod as PodAssignment);
    return yield* checkpointSteps(members, kept, this.#raw.size > 0 ? decode : undefined);
  }
}

const names = (value: unknown = [], where: string) =>
  listOf(value, where, (item, at) => {
    const { name, cpus } = object(item, at);
    return { name: text(name, 'name'), cpus };
  });
