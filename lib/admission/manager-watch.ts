// ManagerWatch: tells a manager's listeners what has changed, and takes back what cgroups had that
// have ended, while somebody listens. A look costs as much as has changed.
import type { Assignments } from '../account/assignments.js';
import type { PodAssignment } from '../account/pod-assignment.js';
import { type FlagGround, isSameGround } from '../decision/flags/flags.js';
import type { GrantInfo } from '../decision/grant-info.js';
import type { Settings } from '../decision/machine-settings.js';
import type { CpuSet } from '../machine/cpu-set.js';
import { type Difference, difference } from '../state/difference.js';
import type { Checkpoint } from '../state/format/checkpoint.js';
import { CgroupWatch } from '../state/owners/cgroup-watch.js';
import type { StateRecovered, StateSource } from '../state/store.js';

/** What has changed between two looks at the state, perhaps in several steps. */
export interface StateChange {
  /** The generation at the last event. */
  readonly before: number;
  /** The generation now; the same as `before` if only flags have changed. */
  readonly generation: number;
  /** Grants that are new since the last event, as they are now. */
  readonly added: readonly GrantInfo[];
  /** Grants that have ended since the last event, as they were. */
  readonly removed: readonly GrantInfo[];
  /** A resize is listed twice: when it is announced (`after.upcoming`) and when it is done. */
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
  ground(state: Assignments): FlagGround;
  /** Whether nothing tells what has become of the CPUs: {@link ManagerWatch.look} is called. */
  isBlind(): boolean;
  settings(): Settings;
  sharedPool(): CpuSet;
  /** Ends the grants of dead owners. */
  reclaim(): Promise<void>;
  tell(change: StateChange): void;
  fail(error: Error): void;
}

/** How often it looks for what nothing tells. */
export const BLIND_MS = 30_000;

/** On what flags were judged, and the grants of which something may have changed. */
interface Judgement {
  readonly ground: FlagGround;
  readonly infos: readonly GrantInfo[];
}

const NO_DIFFERENCE: Difference = { added: [], removed: [], changed: [], haveSettingsChanged: false };

export class ManagerWatch {
  readonly #watched: Watched;
  readonly #cgroups = new CgroupWatch((uid) => this.#reclaimDead(new Set([uid])));
  #end: (() => void) | undefined;
  // What the listeners were told last.
  #seen: Checkpoint | undefined;
  #ground: FlagGround | undefined;
  readonly #flags = new Map<string, string>();
  // How many were told.
  #recoveries = 0;
  #isReclaiming = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(watched: Watched) {
    this.#watched = watched;
  }

  /** @throws as Store.read */
  start(): void {
    if (this.#end) return;
    const store = this.#watched.store();
    // Before the first look, so that nothing is missed.
    this.#end = store.watch(() => this.look());
    try {
      const now = store.read();
      this.#recoveries = this.#watched.recoveries().length;
      if (now) this.#follow(now, this.#judge(now));
      this.#lookLater();
    } catch (error) {
      this.stop();
      throw error;
    }
  }

  stop(): void {
    this.#end?.();
    this.#end = undefined;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#cgroups.stop();
    this.#seen = undefined;
    this.#flags.clear();
  }

  /** Something may have changed: the state, or what flags depend on. */
  look(): void {
    if (!this.#end) return;
    try {
      const now = this.#watched.store().read();
      const before = this.#seen;
      if (!now) return;
      const hasChanged = before?.generation !== now.generation;
      const changes = before && hasChanged ? difference(before.assignments, now.assignments) : NO_DIFFERENCE;
      const judgement = this.#judge(now, before && changes);
      const { infos } = judgement;
      const flagged = infos.filter(
        (info) => this.#flags.has(info.uid) && this.#flags.get(info.uid) !== textOf(info),
      );
      this.#follow(now, judgement, before && changes);
      if (before && (hasChanged || flagged.length > 0))
        this.#watched.tell(this.#change(before, now, changes, infos, flagged));
      this.#recoveries = this.#watched.recoveries().length;
      this.#lookLater();
    } catch (error) {
      this.#watched.fail(error as Error);
    }
  }

  // Those of which something may have changed; without `changes` all.
  #judge({ assignments }: Checkpoint, changes?: Difference): Judgement {
    const ground = this.#watched.ground(assignments);
    const isSame =
      changes && !changes.haveSettingsChanged && this.#ground && isSameGround(this.#ground, ground);
    const pods = isSame ? later(changes) : assignments.pods;
    return { ground, infos: pods.length === 0 ? [] : this.#watched.infos(pods, assignments) };
  }

  #follow(now: Checkpoint, { ground, infos }: Judgement, changes?: Difference): void {
    const { assignments, refusal } = now;
    this.#seen = now;
    this.#ground = ground;
    for (const { uid } of changes?.removed ?? []) {
      this.#flags.delete(uid);
      this.#cgroups.forget(uid);
    }
    for (const info of infos) this.#flags.set(info.uid, textOf(info));
    this.#cgroups.follow(changes ? later(changes) : assignments.pods);
    if (!refusal && infos.some(({ alive }) => !alive)) this.#reclaim();
  }

  // `infos`: of those that have come or changed, at least.
  #change(
    before: Checkpoint,
    now: Checkpoint,
    { added, removed, changed, haveSettingsChanged }: Difference,
    infos: readonly GrantInfo[],
    flagged: readonly GrantInfo[],
  ): StateChange {
    const gone = [...removed, ...changed.map((each) => each.before)];
    const earlier = gone.length === 0 ? [] : this.#watched.infos(gone, before.assignments);
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

  #lookLater(isNeeded = this.#cgroups.isBlind || this.#watched.isBlind()): void {
    if (this.#timer || !this.#end || !isNeeded) return;
    const look = () => {
      this.#timer = undefined;
      this.look();
      this.#reclaimDead(this.#cgroups.uids);
      this.#lookLater();
    };
    this.#timer = setTimeout(look, BLIND_MS).unref();
  }

  // What cgroups had that have ended, of these grants. Of the end of a process every manager hears by
  // itself.
  #reclaimDead(uids: ReadonlySet<string>): void {
    const { assignments, refusal } = this.#seen ?? {};
    if (!assignments || refusal || uids.size === 0) return;
    const pods = assignments.pods.filter(({ uid }) => uids.has(uid));
    if (this.#watched.infos(pods, assignments).some(({ alive }) => !alive)) this.#reclaim();
  }

  // Every manager that watches may try: the first does it, the others then find nothing to do.
  #reclaim(): void {
    if (this.#isReclaiming) return;
    this.#isReclaiming = true;
    this.#watched
      .reclaim()
      .catch((error) => {
        this.#watched.fail(error);
        this.#lookLater(true);
      })
      .finally(() => {
        this.#isReclaiming = false;
      });
  }
}

const later = ({ added, changed }: Difference) => [...added, ...changed.map(({ after }) => after)];

const textOf = ({ flags }: GrantInfo) => flags.map(({ message }) => message).join('; ');
