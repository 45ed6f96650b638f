// The holders of a machine's resources in its picture. Pure.
import { CpuSet, type GrantInfo, type MemoryTable, type Settings } from 'numalign';
import type { PodPlan, StateStatus } from 'numalign/diagnostics';
import { cpusOfGrants } from 'numalign/tools';
import { idLength } from '../words/grant-names.js';
import { kubeletHolders } from '../words/kubelet-holders.js';

/** A grant, a planned pod or a pod of the kubelet. */
export interface Holder extends Pick<GrantInfo, 'cpus' | 'memory' | 'devices'> {
  readonly name: string;
  /** Further facts about it. */
  readonly note?: string;
  /** The number of its colour. Default: its place in the list. */
  readonly color?: number;
  /** True for the subject of the picture: planned pods. */
  readonly isHighlighted: boolean;
}

export interface Holdings {
  readonly holders: readonly Holder[];
  readonly settings: Settings;
  readonly memory: readonly MemoryTable[];
}

/** The CPUs of all holders. */
export function exclusiveCpus(holders: readonly Holder[]): CpuSet {
  return holders.reduce((cpus, holder) => cpus.union(holder.cpus), CpuSet.EMPTY);
}

/** The holdings of a state. */
export function holdingsOf({ grants, settings, memory, kubelet }: StateStatus): Holdings {
  const length = idLength(grants.map(({ uid }) => uid));
  const holders = grants.map(
    ({ uid, name, memory: blocks, devices, alive, ...grant }): Holder => ({
      name: name === uid ? uid.slice(0, length) : name,
      cpus: cpusOfGrants([grant]),
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
 * The holdings of a state with planned pods. `titleOf` names a planned pod; `memory` includes the
 * plans. The grants of dead owners are left out: the plans may use what they hold.
 */
export function holdingsWith(
  status: StateStatus,
  plans: readonly PodPlan[],
  memory: readonly MemoryTable[],
  titleOf: (plan: PodPlan) => string,
): Holdings {
  const living = { ...status, memory, grants: status.grants.filter(({ alive }) => alive) };
  const { settings, holders } = holdingsOf(living);
  const planOfUid = new Map(plans.map((plan) => [plan.uid, plan]));
  const onRecord = living.grants.map(({ uid }, i): Holder => {
    const plan = planOfUid.get(uid);
    return plan ? { ...holders[i]!, name: titleOf(plan), isHighlighted: true } : holders[i]!;
  });
  const newHolders = plans
    .filter(({ admitted, alreadyAdmitted }) => admitted && !alreadyAdmitted)
    .map((plan): Holder => {
      const { cpus, memory: blocks, devices } = plan;
      return { name: titleOf(plan), cpus, memory: blocks, devices, isHighlighted: true };
    });
  const others = holders.slice(onRecord.length);
  return { holders: [...onRecord, ...others, ...newHolders], settings, memory };
}
