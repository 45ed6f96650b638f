// Who holds what of a machine, as its picture shows it. Pure.
import type { PodPlan, StateStatus } from '../../entries/diagnostics.js';
import { CpuSet, type GrantInfo, type MemoryTable, type Settings } from '../../index.js';
import { kubeletHolders } from '../pages/kubelet-text.js';
import { shownIdLength } from '../pages/status/grant-table.js';

/** Who keeps something from others, whether anything runs there or not. */
export interface Holder extends Pick<GrantInfo, 'cpus' | 'memory' | 'devices'> {
  readonly name: string;
  /** Further facts about it. */
  readonly note?: string;
  /** It is what the picture is about. */
  readonly isHighlighted: boolean;
}

export interface Holdings {
  readonly holders: readonly Holder[];
  readonly settings: Settings;
  readonly memory: readonly MemoryTable[];
}

/** The CPUs that any of them has. */
export function exclusiveCpus(holders: readonly Holder[]): CpuSet {
  return holders.reduce((cpus, holder) => cpus.union(holder.cpus), CpuSet.EMPTY);
}

/** Those of a state. */
export function holdingsOf({ grants, settings, memory, kubelet }: StateStatus): Holdings {
  const length = shownIdLength(grants.map(({ uid }) => uid));
  const holders = grants.map(
    ({ uid, name, cpus, upcoming, former, memory: blocks, devices, alive }): Holder => ({
      name: name === uid ? uid.slice(0, length) : name,
      cpus: cpus.union(upcoming ?? CpuSet.EMPTY).union(former ?? CpuSet.EMPTY),
      memory: blocks,
      devices,
      ...(alive ? {} : { note: 'dead: taken back at the next transaction' }),
      isHighlighted: false,
    }),
  );
  const others = kubeletHolders(kubelet).map((holder) => ({ ...holder, isHighlighted: false }));
  return { holders: [...holders, ...others], settings, memory };
}

/**
 * Those of a state with pods that are planned on it. `titleOf`: how a planned pod is called;
 * `memory`: the accounts with what is planned. What dead owners have is free for them.
 */
export function holdingsWith(
  status: StateStatus,
  plans: readonly PodPlan[],
  memory: readonly MemoryTable[],
  titleOf: (plan: PodPlan) => string,
): Holdings {
  const living = { ...status, memory, grants: status.grants.filter(({ alive }) => alive) };
  const { settings, holders } = holdingsOf(living);
  const planned = new Map(plans.map((plan) => [plan.uid, plan]));
  const onRecord = living.grants.map(({ uid }, i): Holder => {
    const plan = planned.get(uid);
    return plan ? { ...holders[i]!, name: titleOf(plan), isHighlighted: true } : holders[i]!;
  });
  const added = plans
    .filter(({ admitted, alreadyAdmitted }) => admitted && !alreadyAdmitted)
    .map((plan): Holder => {
      const { cpus, memory: blocks, devices } = plan;
      return { name: titleOf(plan), cpus, memory: blocks, devices, isHighlighted: true };
    });
  const others = holders.slice(onRecord.length);
  return { holders: [...onRecord, ...others, ...added], settings, memory };
}
