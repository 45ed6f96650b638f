// MachineQuieter: keeps CPUs quiet on the machine that this process runs on.
import type { Assignments, QuietSetting } from '../account/assignments.js';
import type { Comparison } from '../enforcement/drift.js';
import type { CpuSet } from '../machine/cpu-set.js';
import type { Topology } from '../machine/topology.js';
import { demandsAmong, demandsFor, type QuietDemand, quietDemands } from './kernel/demands.js';
import type { KernelFiles } from './kernel/kernel-files.js';
import type { Part } from './kernel/setting.js';
import { type FoundSetting, lookAtSettings, type QuietFacts } from './look.js';
import { type QuietOutcome, quietOutcome } from './outcome.js';
import { type Change, type Exclusions, planQuiet, type QuietPlan } from './plan.js';
import { type Quieter, type QuietReview, type QuietStep, quietKey, type RecordState } from './quieter.js';
import { settingsAfter, settingsDuring, withSettings } from './record.js';
import { rewrite, writeAll } from './writing.js';

export class MachineQuieter implements Quieter {
  constructor(
    private readonly topology: () => Topology,
    private readonly parts: readonly Part[],
    private readonly files: KernelFiles,
    private readonly remainingWork: (cpus: CpuSet) => readonly string[],
  ) {}

  #facts(demands: readonly QuietDemand[], records: readonly QuietSetting[]): QuietFacts {
    const [parts, files, topology] = [this.parts, this.files, this.topology()];
    return { parts, files, topology, demands, recorded: records };
  }

  #factsOf(state: Assignments): QuietFacts {
    return this.#facts(quietDemands(state), state.quiet?.settings ?? []);
  }

  #exclusions(isGivenUp?: (path: string) => boolean): Exclusions {
    return { isGivenUp, isWritable: (path) => this.files.isWritable(path) };
  }

  async #plan(
    demands: readonly QuietDemand[],
    records: readonly QuietSetting[],
    isGivenUp?: (path: string) => boolean,
  ): Promise<QuietPlan> {
    const look = await lookAtSettings(this.#facts(demands, records));
    return planQuiet(look, records, this.#exclusions(isGivenUp));
  }

  follow(
    before: Assignments,
    next: Assignments,
    record: RecordState,
    review?: QuietReview,
  ): Promise<QuietStep> | undefined {
    const [former, demands] = [quietDemands(before), quietDemands(next)];
    const isSame = demandsAmong(former, demands) === former && demandsAmong(demands, former) === demands;
    return isSame && !review && !isWaiting(before)
      ? undefined
      : this.#follow(before, next, record, review?.isGivenUp);
  }

  // Works in two steps. What is no longer requested is restored while its grants are still on
  // record. What is newly requested is written once its grants are on record.
  async #follow(
    before: Assignments,
    next: Assignments,
    record: RecordState,
    isGivenUp?: (path: string) => boolean,
  ): Promise<QuietStep> {
    const [former, demands] = [quietDemands(before), quietDemands(next)];
    const lasting = demandsAmong(former, demands);
    let settings = before.quiet?.settings ?? [];
    let rollback: readonly Change[] = [];
    const foreign: FoundSetting[] = [];
    if (lasting !== former) {
      const plan = await this.#plan(lasting, settings, isGivenUp);
      if (plan.changes.length > 0) await record(withSettings(before, settingsDuring(plan)));
      const steps = [...plan.restorations, ...plan.changes];
      const refusals = await writeAll(steps);
      rollback = steps.filter(({ setting }) => !refusals.has(setting));
      settings = settingsAfter(plan, refusals);
      foreign.push(...plan.foreign);
    }
    // If nothing more is requested, nothing is left to do.
    const isSettled = lasting !== former && demandsAmong(demands, lasting) === demands;
    const plan = isSettled
      ? { restorations: [], changes: [], foreign: [], settings }
      : await this.#plan(demands, settings, isGivenUp);
    const nextState = withSettings(next, settingsDuring(plan));
    return {
      next: nextState,
      foreign: [...foreign, ...plan.foreign].map(
        ({ setting, value }) => `${setting.title} stays ${value}, which another program has set`,
      ),
      write: async (committed) => this.#settle(await this.#carryOut(committed, plan)),
      undo: () => rewrite(rollback),
    };
  }

  async #carryOut(state: Assignments, plan: QuietPlan): Promise<Assignments> {
    const refusals = await writeAll([...plan.restorations, ...plan.changes]);
    return withSettings(state, settingsAfter(plan, refusals));
  }

  // What waited for the end of an isolated partition can be restored now.
  async #settle(state: Assignments): Promise<Assignments> {
    if (!isWaiting(state)) return state;
    const { settings } = state.quiet!;
    return this.#carryOut(state, await this.#plan(quietDemands(state), settings));
  }

  outcome(state: Assignments, uid: string): QuietOutcome {
    return quietOutcome(this.#factsOf(state), uid, this.remainingWork);
  }

  async compare(state: Assignments): Promise<Comparison> {
    const facts = this.#factsOf(state);
    const look = await lookAtSettings(facts);
    const { changes, restorations } = planQuiet(look, facts.recorded, this.#exclusions());
    return {
      checked: look.found.length,
      drifts: [...restorations, ...changes].map(({ setting, value, target, part }) => ({
        kind: 'quiet' as const,
        uid: null,
        key: quietKey(setting.path),
        what: `${setting.title} is ${value}, not ${target}, for the quiet (${part}) of grants`,
        // All differences are repaired together, after the others: each write needs a record first.
        repair: () => 0,
      })),
    };
  }
}

/** Whether settings are on record that no grant requests, and that can only be restored later. */
function isWaiting(state: Assignments): boolean {
  const demands = quietDemands(state);
  return (state.quiet?.settings ?? []).some(
    ({ part, refusal }) => refusal === null && demandsFor(demands, part).length === 0,
  );
}
