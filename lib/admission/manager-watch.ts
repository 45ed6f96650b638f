// ManagerWatch: tells a manager's listeners what has changed, and takes back what dead owners had,
// while somebody listens.
import type { Assignments } from '../account/assignments.js';
import type { PodAssignment } from '../account/pod-assignment.js';
import type { GrantInfo } from '../decision/grant-info.js';
import type { Settings } from '../decision/machine-settings.js';
import type { CpuSet } from '../machine/cpu-set.js';
import { difference } from '../state/difference.js';
import type { Checkpoint } from '../state/format/checkpoint.js';
import type { StateRecovered, StateSource } from '../state/store.js';

/** What has changed between two looks at the state, perhaps in several steps. */
export interface StateChange {
  /** The generation that was seen last, and the one now. */
  readonly before: number;
  readonly generation: number;
  readonly added: readonly GrantInfo[];
  readonly removed: readonly GrantInfo[];
  /** A resize is told twice: when it is announced (`after.upcoming`) and when it is done. */
  readonly changed: readonly { readonly before: GrantInfo; readonly after: GrantInfo }[];
  /**
   * Grants of which something has ceased to hold, or holds again ({@link GrantInfo.flags}); also
   * without a commit: `before` is `generation` then.
   */
  readonly flagged: readonly GrantInfo[];
  /** What was damaged and has been put together again by this process. */
  readonly recovered: readonly StateRecovered[];
  /** The machine's settings, where they have changed; else null. */
  readonly settings: Settings | null;
  /** As it is now. */
  readonly sharedPool: CpuSet;
}

/** What is watched, and who is told. */
export interface Watched {
  store(): StateSource;
  recoveries(): readonly StateRecovered[];
  infos(pods: readonly PodAssignment[], state: Assignments): readonly GrantInfo[];
  settings(): Settings;
  sharedPool(): CpuSet;
  /** Ends the grants of dead owners. */
  reclaim(): Promise<void>;
  tell(change: StateChange): void;
  fail(error: Error): void;
}

// How often it looks for what no commit tells, at most.
const QUIET_MS = 250;

export class ManagerWatch {
  readonly #watched: Watched;
  #end: (() => void) | undefined;
  // What the listeners were told last.
  #seen: Checkpoint | undefined;
  #flags: ReadonlyMap<string, string> = new Map();
  // How many were told.
  #recoveries = 0;
  #isReclaiming = false;
  #nextQuietLook = 0;

  constructor(watched: Watched) {
    this.#watched = watched;
  }

  /** @throws as Store.read */
  start(): void {
    if (this.#end) return;
    const store = this.#watched.store();
    this.#seen = store.read();
    this.#recoveries = this.#watched.recoveries().length;
    if (this.#seen) this.#flags = flagsOf(this.#infosOf(this.#seen));
    this.#end = store.watch(() => this.#look());
  }

  stop(): void {
    this.#end?.();
    this.#end = undefined;
  }

  #look(): void {
    if (!this.#end) return;
    try {
      const now = this.#watched.store().read();
      const before = this.#seen;
      const hasChanged = before?.generation !== now?.generation;
      const isQuietLook = performance.now() >= this.#nextQuietLook;
      if (!now || !(hasChanged || isQuietLook)) return;
      this.#seen = now;
      const infos = this.#infosOf(now);
      const flagged = this.#newlyFlagged(infos);
      if (before && (hasChanged || flagged.length > 0))
        this.#watched.tell(this.#change(before, now, infos, flagged));
      this.#recoveries = this.#watched.recoveries().length;
      if (isQuietLook) this.#nextQuietLook = performance.now() + QUIET_MS;
      if (isQuietLook && !now.refusal && infos.some(({ alive }) => !alive)) this.#reclaim();
    } catch (error) {
      this.#watched.fail(error as Error);
    }
  }

  #infosOf({ assignments }: Checkpoint): readonly GrantInfo[] {
    return this.#watched.infos(assignments.pods, assignments);
  }

  #newlyFlagged(infos: readonly GrantInfo[]): GrantInfo[] {
    const before = this.#flags;
    this.#flags = flagsOf(infos);
    return infos.filter(({ uid }) => before.has(uid) && before.get(uid) !== this.#flags.get(uid));
  }

  // `infos`: of all grants now.
  #change(
    before: Checkpoint,
    now: Checkpoint,
    infos: readonly GrantInfo[],
    flagged: readonly GrantInfo[],
  ): StateChange {
    const [old, state] = [before.assignments, now.assignments];
    const { added, removed, changed, haveSettingsChanged } = difference(old, state);
    const earlier = this.#watched.infos([...removed, ...changed.map((each) => each.before)], old);
    const befores = earlier.slice(removed.length);
    const present = new Map(infos.map((info) => [info.uid, info]));
    return Object.freeze({
      before: before.generation,
      generation: now.generation,
      added: added.map(({ uid }) => present.get(uid)!),
      removed: earlier.slice(0, removed.length),
      changed: changed.map(({ after }, i) => ({ before: befores[i]!, after: present.get(after.uid)! })),
      flagged,
      recovered: this.#watched.recoveries().slice(this.#recoveries),
      settings: haveSettingsChanged ? this.#watched.settings() : null,
      sharedPool: this.#watched.sharedPool(),
    });
  }

  // Every manager that watches may try: the first does it, the others then find nothing to do.
  #reclaim(): void {
    if (this.#isReclaiming) return;
    this.#isReclaiming = true;
    this.#watched
      .reclaim()
      .catch((error) => this.#watched.fail(error))
      .finally(() => {
        this.#isReclaiming = false;
      });
  }
}

function flagsOf(infos: readonly GrantInfo[]): ReadonlyMap<string, string> {
  return new Map(infos.map(({ uid, flags }) => [uid, flags.map(({ message }) => message).join('; ')]));
}
