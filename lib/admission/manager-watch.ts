// ManagerWatch: while a manager has listeners, tells them what changed, and takes back the grants
// of ended cgroups. The cost of a look depends only on what changed.
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
  /**
   * Grants that have ended since the last event, as they were. Handle these before `added`: a grant
   * whose uid was released and admitted again is in both.
   */
  readonly removed: readonly GrantInfo[];
  /** A resize is listed twice: when it is announced (`after.upcoming`) and when it is done. */
  readonly changed: readonly { readonly before: GrantInfo; readonly after: GrantInfo }[];
  /** Grants whose {@link GrantInfo.flags} changed, also without a commit. */
  readonly flagged: readonly GrantInfo[];
  /** What this process recovered of a damaged state. */
  readonly recovered: readonly StateRecovered[];
  /** The machine's settings, if they changed; else null. */
  readonly settings: Settings | null;
  /** The present shared pool. */
  readonly sharedPool: CpuSet;
}

/** What a watch reads, and what it calls. */
export interface WatchPorts {
  store(): StateSource;
  recoveries(): readonly StateRecovered[];
  infos(pods: readonly PodAssignment[], state: Assignments): readonly GrantInfo[];
  ground(state: Assignments): FlagGround;
  /** True if nothing else calls {@link ManagerWatch.look} when CPUs change. */
  isBlind(): boolean;
  settings(): Settings;
  sharedPool(): CpuSet;
  /** Ends the grants of dead owners. */
  reclaim(): Promise<void>;
  tell(change: StateChange): void;
  fail(error: Error): void;
}

/** How often it looks for changes that nothing reports. */
export const BLIND_MS = 30_000;

/** What flags were judged on, and the grants that may have changed. */
interface Judgement {
  readonly ground: FlagGround;
  readonly infos: readonly GrantInfo[];
}

const NO_DIFFERENCE: Difference = { added: [], removed: [], changed: [], haveSettingsChanged: false };

export class ManagerWatch {
  readonly #ports: WatchPorts;
  readonly #cgroups = new CgroupWatch((uid) => this.#reclaimDead(new Set([uid])));
  #end: (() => void) | undefined;
  // The checkpoint of the last look.
  #last: Checkpoint | undefined;
  #ground: FlagGround | undefined;
  readonly #flags = new Map<string, string>();
  // How many recoveries the listeners know.
  #recoveries = 0;
  #isReclaiming = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(ports: WatchPorts) {
    this.#ports = ports;
  }

  /** @throws as Store.read */
  start(): void {
    if (this.#end) return;
    const store = this.#ports.store();
    // It watches before the first look, so that it misses nothing.
    this.#end = store.watch(() => this.look());
    try {
      const now = store.read();
      this.#recoveries = this.#ports.recoveries().length;
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
    this.#last = undefined;
    this.#flags.clear();
  }

  /** Looks for changes of the state, and of what flags depend on. */
  look(): void {
    if (!this.#end) return;
    try {
      const now = this.#ports.store().read();
      const before = this.#last;
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
        this.#ports.tell(this.#change(before, now, changes, infos, flagged));
      this.#recoveries = this.#ports.recoveries().length;
      this.#lookLater();
    } catch (error) {
      this.#ports.fail(error as Error);
    }
  }

  // Judges the grants that may have changed; without `changes` all.
  #judge({ assignments }: Checkpoint, changes?: Difference): Judgement {
    const ground = this.#ports.ground(assignments);
    const isSame =
      changes && !changes.haveSettingsChanged && this.#ground && isSameGround(this.#ground, ground);
    const pods = isSame ? podsAfter(changes) : assignments.pods;
    return { ground, infos: pods.length === 0 ? [] : this.#ports.infos(pods, assignments) };
  }

  #follow(now: Checkpoint, { ground, infos }: Judgement, changes?: Difference): void {
    const { assignments, refusal } = now;
    this.#last = now;
    this.#ground = ground;
    for (const { uid } of changes?.removed ?? []) {
      this.#flags.delete(uid);
      this.#cgroups.forget(uid);
    }
    for (const info of infos) this.#flags.set(info.uid, textOf(info));
    this.#cgroups.follow(changes ? podsAfter(changes) : assignments.pods);
    if (!refusal && infos.some(({ alive }) => !alive)) this.#reclaim();
  }

  // `infos` has at least the added and the changed grants.
  #change(
    before: Checkpoint,
    now: Checkpoint,
    { added, removed, changed, haveSettingsChanged }: Difference,
    infos: readonly GrantInfo[],
    flagged: readonly GrantInfo[],
  ): StateChange {
    const earlierPods = [...removed, ...changed.map((each) => each.before)];
    const earlier = earlierPods.length === 0 ? [] : this.#ports.infos(earlierPods, before.assignments);
    const befores = earlier.slice(removed.length);
    const present = new Map(infos.map((info) => [info.uid, info]));
    return Object.freeze({
      before: before.generation,
      generation: now.generation,
      added: added.map(({ uid }) => present.get(uid)!),
      removed: earlier.slice(0, removed.length),
      changed: changed.map(({ after }, i) => ({ before: befores[i]!, after: present.get(after.uid)! })),
      flagged,
      recovered: this.#ports.recoveries().slice(this.#recoveries),
      settings: haveSettingsChanged ? this.#ports.settings() : null,
      sharedPool: this.#ports.sharedPool(),
    });
  }

  #lookLater(isNeeded = this.#cgroups.isBlind || this.#ports.isBlind()): void {
    if (this.#timer || !this.#end || !isNeeded) return;
    const look = () => {
      this.#timer = undefined;
      this.look();
      this.#reclaimDead(this.#cgroups.uids);
      this.#lookLater();
    };
    this.#timer = setTimeout(look, BLIND_MS).unref();
  }

  // Takes back those of these grants whose cgroups have ended. Processes need no watch: every
  // manager hears of their end.
  #reclaimDead(uids: ReadonlySet<string>): void {
    const { assignments, refusal } = this.#last ?? {};
    if (!assignments || refusal || uids.size === 0) return;
    const pods = assignments.pods.filter(({ uid }) => uids.has(uid));
    if (this.#ports.infos(pods, assignments).some(({ alive }) => !alive)) this.#reclaim();
  }

  // Every watching manager may try: the first succeeds, and the others find nothing to do.
  #reclaim(): void {
    if (this.#isReclaiming) return;
    this.#isReclaiming = true;
    this.#ports
      .reclaim()
      .catch((error) => {
        this.#ports.fail(error);
        this.#lookLater(true);
      })
      .finally(() => {
        this.#isReclaiming = false;
      });
  }
}

const podsAfter = ({ added, changed }: Difference) => [...added, ...changed.map(({ after }) => after)];

const textOf = ({ flags }: GrantInfo) => flags.map(({ message }) => message).join('; ');
