// MachineQuieter: quiet CPUs on the machine that this process runs on.
import type { Assignments } from '../account/assignments.js';
import type { QuietRecord, QuietSetting } from '../account/quiet/quiet-record.js';
import type { Comparison } from '../enforcement/drift.js';
import type { CpuSet } from '../machine/cpu-set.js';
import type { Topology } from '../machine/topology.js';
import type { QuietDemand } from './kernel/demands.js';
import { demandsAmong, demandsFor, quietDemands } from './kernel/demands.js';
import type { KernelFiles } from './kernel/kernel-files.js';
import type { Part } from './kernel/setting.js';
import { type FoundSetting, lookAtSettings, type QuietGround } from './look.js';
import { type QuietOutcome, quietOutcome } from './outcome.js';
import { type Abstention, type Change, planQuiet, type QuietPlan } from './plan.js';
import { type QuietAnew, type Quieter, type QuietStep, quietKey, type RecordState } from './quieter.js';
import { settingsAfter, settingsDuring, withSettings } from './record.js';
import { rewrite, writeAll } from './writing.js';

export class MachineQuieter implements Quieter {
  readonly #topology: () => Topology;
  readonly #parts: readonly Part[];
  readonly #files: KernelFiles;
  readonly #unchanged: (cpus: CpuSet) => readonly string[];

  constructor(
    topology: () => Topology,
    parts: readonly Part[],
    files: KernelFiles,
    unchanged: (cpus: CpuSet) => readonly string[],
  ) {
    this.#topology = topology;
    this.#parts = parts;
    this.#files = files;
    this.#unchanged = unchanged;
  }

  #ground(demands: readonly QuietDemand[], recorded: QuietRecord | null): QuietGround {
    return {
      ...{ parts: this.#parts, files: this.#files, topology: this.#topology() },
      ...{ demands, recorded: recorded?.settings ?? [] },
    };
  }

  #abstention(isGivenUp?: (path: string) => boolean): Abstention {
    return { isGivenUp, isWritable: (path) => this.#files.isWritable(path) };
  }

  async #plan(
    demands: readonly QuietDemand[],
    recorded: readonly QuietSetting[],
    isGivenUp?: (path: string) => boolean,
  ): Promise<QuietPlan> {
    const ground = { ...this.#ground(demands, null), recorded };
    return planQuiet(await lookAtSettings(ground), recorded, this.#abstention(isGivenUp));
  }

  follow(
    before: Assignments,
    next: Assignments,
    record: RecordState,
    anew?: QuietAnew,
  ): Promise<QuietStep> | undefined {
    const [former, wanted] = [quietDemands(before), quietDemands(next)];
    const isSame = demandsAmong(former, wanted) === former && demandsAmong(wanted, former) === wanted;
    return isSame && !anew && !isWaiting(before)
      ? undefined
      : this.#follow(before, next, record, anew?.isGivenUp);
  }

  // In two steps: what is asked for no more is given back while the grants that have asked for it are
  // on record; what is asked for from now on is written once it is.
  async #follow(
    before: Assignments,
    next: Assignments,
    record: RecordState,
    isGivenUp?: (path: string) => boolean,
  ): Promise<QuietStep> {
    const former = quietDemands(before);
    const kept = demandsAmong(former, quietDemands(next));
    let settings = before.quiet?.settings ?? [];
    let done: readonly Change[] = [];
    const foreign: FoundSetting[] = [];
    if (kept !== former) {
      const plan = await this.#plan(kept, settings, isGivenUp);
      if (plan.changes.length > 0) await record(withSettings(before, settingsDuring(plan)));
      const steps = [...plan.restorations, ...plan.changes];
      const refusals = await writeAll(steps);
      done = steps.filter(({ setting }) => !refusals.has(setting));
      settings = settingsAfter(plan, refusals);
      foreign.push(...plan.foreign);
    }
    const plan = await this.#plan(quietDemands(next), settings, isGivenUp);
    const about = withSettings(next, settingsDuring(plan));
    return {
      next: about,
      foreign: [...foreign, ...plan.foreign].map(
        ({ setting, value }) => `${setting.title} stays ${value}, which somebody else has set`,
      ),
      write: async (committed) => this.#settle(await this.#carryOut(committed, plan)),
      undo: () => rewrite(done),
    };
  }

  async #carryOut(state: Assignments, plan: QuietPlan): Promise<Assignments> {
    const refusals = await writeAll([...plan.restorations, ...plan.changes]);
    return withSettings(state, settingsAfter(plan, refusals));
  }

  // What waited for the end of an isolated partition can be restored by now.
  async #settle(state: Assignments): Promise<Assignments> {
    if (!isWaiting(state)) return state;
    const { settings } = state.quiet!;
    return this.#carryOut(state, await this.#plan(quietDemands(state), settings));
  }

  outcome(state: Assignments, uid: string): QuietOutcome {
    return quietOutcome(this.#ground(quietDemands(state), state.quiet), uid, this.#unchanged);
  }

  async compare(state: Assignments): Promise<Comparison> {
    const ground = this.#ground(quietDemands(state), state.quiet);
    const look = await lookAtSettings(ground);
    const { changes, restorations } = planQuiet(look, ground.recorded, this.#abstention());
    return {
      checked: look.found.length,
      found: [...restorations, ...changes].map(({ setting, value, target, part }) => ({
        kind: 'quiet' as const,
        uid: null,
        key: quietKey(setting.path),
        what: `${setting.title} is ${value}, not ${target}, for the quiet (${part}) of grants`,
        // All of it together, after the others: what is written goes on record before.
        repair: () => 0,
      })),
    };
  }
}

/** Whether settings are on record that no grant asks for, and that can be restored later only. */
function isWaiting(state: Assignments): boolean {
  const demands = quietDemands(state);
  return (state.quiet?.settings ?? []).some(
    ({ part, refusal }) => refusal === null && demandsFor(demands, part).length === 0,
  );
}
