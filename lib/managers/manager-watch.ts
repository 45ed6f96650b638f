// ManagerWatch: while a manager has listeners, tells them what changed, and takes back the grants
// of ended cgroups. The cost of a look depends only on what changed.
import { cpusNow } from '../account/cpus-now.js';
import { sharedPool } from '../account/pools.js';
import { publishError } from '../admission/diagnostics.js';
import type { ReadOnlyHost } from '../admission/host.js';
import { flagInputsNow, grantInfos, knownAssignments } from '../admission/on-record.js';
import { type FlagInputs, haveSameFlags } from '../decision/flags/flag-inputs.js';
import type { GrantInfo } from '../decision/grant-info.js';
import { type Settings, settingsNow } from '../decision/machine-settings.js';
import type { CpuSet } from '../machine/cpu-set.js';
import { type Difference, difference } from '../state/difference.js';
import type { Checkpoint } from '../state/format/checkpoint.js';
import { CgroupWatch } from '../state/owners/cgroup-watch.js';
import type { StateRecovered } from '../state/store.js';

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

/** How a watch differs from manager to manager. */
export interface WatchOptions {
  /** True if nothing else calls {@link ManagerWatch.look} when CPUs change. */
  readonly isBlind: boolean;
  /** Ends the grants of dead owners; does nothing for a view that only reads. */
  reclaim(): Promise<void>;
}

/** Who is told. */
export interface WatchListener {
  tell(change: StateChange): void;
  fail(error: Error): void;
}

/** How often it looks for changes that nothing reports. */
export const BLIND_MS = 30_000;

/** What flags were judged on, and the grants that may have changed. */
interface Judgement {
  readonly inputs: FlagInputs;
  readonly infos: readonly GrantInfo[];
}

/** From one look to the next. */
interface Look {
  readonly before: Checkpoint;
  readonly now: Checkpoint;
  readonly changes: Difference;
}

const NO_DIFFERENCE: Difference = { added: [], removed: [], changed: [], haveSettingsChanged: false };

export class ManagerWatch {
  readonly #host: ReadOnlyHost;
  readonly #isBlind: boolean;
  readonly #endDead: () => Promise<void>;
  readonly #cgroups = new CgroupWatch((uid) => this.#reclaimDead(new Set([uid])));
  #listener: WatchListener | undefined;
  #end: (() => void) | undefined;
  // The checkpoint of the last look.
  #last: Checkpoint | undefined;
  #inputs: FlagInputs | undefined;
  readonly #flags = new Map<string, string>();
  // How many recoveries the listeners know.
  #recoveries = 0;
  #isReclaiming = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(host: ReadOnlyHost, { isBlind, reclaim }: WatchOptions) {
    this.#host = host;
    this.#isBlind = isBlind && !host.topology.isSimulated;
    this.#endDead = reclaim;
  }

  /** @throws as Store.read */
  start(listener: WatchListener): void {
    if (this.#end) return;
    const { ledger } = this.#host;
    this.#listener = listener;
    // It watches before the first look, so that it misses nothing.
    this.#end = ledger.watch(() => this.look());
    try {
      const now = ledger.read();
      this.#recoveries = ledger.recoveries.length;
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

  /** Has it look for changes of flags, which need no commit. */
  lookSoon(): void {
    setImmediate(() => this.look());
  }

  /** Looks for changes of the state, and of what flags depend on. */
  look(): void {
    if (!this.#end) return;
    try {
      const now = this.#host.ledger.read();
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
        this.#listener?.tell(this.#change({ before, now, changes }, infos, flagged));
      this.#recoveries = this.#host.ledger.recoveries.length;
      this.#lookLater();
    } catch (error) {
      this.#fail(error as Error);
    }
  }

  // Judges the grants that may have changed; without `changes` all.
  #judge({ assignments }: Checkpoint, changes?: Difference): Judgement {
    const inputs = flagInputsNow(this.#host, assignments);
    const isSame =
      changes && !changes.haveSettingsChanged && this.#inputs && haveSameFlags(this.#inputs, inputs);
    const pods = isSame ? podsAfter(changes) : assignments.pods;
    return { inputs, infos: pods.length === 0 ? [] : grantInfos(this.#host, pods, assignments) };
  }

  #follow(now: Checkpoint, { inputs, infos }: Judgement, changes?: Difference): void {
    const { assignments, refusal } = now;
    this.#last = now;
    this.#inputs = inputs;
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
    { before, now, changes }: Look,
    infos: readonly GrantInfo[],
    flagged: readonly GrantInfo[],
  ): StateChange {
    const { ledger, topology } = this.#host;
    const { added, removed, changed, haveSettingsChanged } = changes;
    const { settings, pods } = now.assignments;
    const cpus = cpusNow(topology, pods);
    const earlierPods = [...removed, ...changed.map((each) => each.before)];
    const earlier = earlierPods.length === 0 ? [] : grantInfos(this.#host, earlierPods, before.assignments);
    const befores = earlier.slice(removed.length);
    const present = new Map(infos.map((info) => [info.uid, info]));
    return Object.freeze({
      before: before.generation,
      generation: now.generation,
      added: added.map(({ uid }) => present.get(uid)!),
      removed: earlier.slice(0, removed.length),
      changed: changed.map(({ after }, i) => ({ before: befores[i]!, after: present.get(after.uid)! })),
      flagged,
      recovered: ledger.recoveries.slice(this.#recoveries),
      settings: haveSettingsChanged ? settingsNow(settings, cpus) : null,
      sharedPool: sharedPool(knownAssignments(this.#host), cpus),
    });
  }

  #lookLater(isNeeded = this.#cgroups.isBlind || this.#isBlind): void {
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
    if (grantInfos(this.#host, pods, assignments).some(({ alive }) => !alive)) this.#reclaim();
  }

  // Every watching manager may try: the first succeeds, and the others find nothing to do.
  #reclaim(): void {
    if (this.#isReclaiming) return;
    this.#isReclaiming = true;
    this.#endDead()
      .catch((error) => {
        this.#fail(error);
        this.#lookLater(true);
      })
      .finally(() => {
        this.#isReclaiming = false;
      });
  }

  #fail(error: Error): void {
    publishError(this.#host, 'watch', error);
    this.#listener?.fail(error);
  }
}

const podsAfter = ({ added, changed }: Difference) => [...added, ...changed.map(({ after }) => after)];

const textOf = ({ flags }: GrantInfo) => flags.map(({ message }) => message).join('; ');
