// The pools of CPUs: what can be granted, what is free, and what is shared. Pure.
import { oncePerLast } from '../base/collections/once-per.js';
import type { CpuSet } from '../machine/cpu-set.js';
import type { Assignments, MachineSettings } from './assignments.js';
import { cpusOfPods } from './cpus-of-pods.js';
import { kubeletCpus } from './kubelet-record.js';
import type { CpuPool } from './pod-holdings.js';

/** Every CPU that a grant or a pod of the kubelet holds exclusively. */
export function exclusiveCpus({ pods, kubelet }: Pick<Assignments, 'pods' | 'kubelet'>): CpuSet {
  const granted = cpusOfPods(pods);
  return kubelet === null ? granted : granted.union(kubeletCpus(kubelet));
}

/** The kernel's lists of the machine's CPUs at one moment, read before a decision. */
export interface CpuSnapshot {
  readonly online: CpuSet;
  /** CPUs that the kernel keeps ordinary work off. */
  readonly isolated: CpuSet;
}

/** The managed CPUs among `online`, which numalign grants or shares. */
export function universe(settings: MachineSettings, { online }: Pick<CpuSnapshot, 'online'>): CpuSet {
  return settings.managedCPUs === null ? online : settings.managedCPUs.intersection(online);
}

/** The managed isolated CPUs, granted or not, without reserved ones. */
export const isolatedPool = oncePerLast((settings: MachineSettings, now: CpuSnapshot) => {
  const isolated = settings.isolatedCPUs ?? now.isolated;
  return universe(settings, now).intersection(isolated).difference(settings.reservedSystemCPUs);
});

const ordinaryPool = oncePerLast((settings: MachineSettings, now: CpuSnapshot) =>
  universe(settings, now).difference(settings.reservedSystemCPUs).difference(isolatedPool(settings, now)),
);

/** Managed CPUs of a pool, granted or not, without reserved ones. */
export function grantableCpus(settings: MachineSettings, now: CpuSnapshot, pool: CpuPool): CpuSet {
  return pool === 'isolated' ? isolatedPool(settings, now) : ordinaryPool(settings, now);
}

/** What a new grant may take of a pool: CPUs that no grant holds, without reserved ones. */
export const freeCpus = (state: Assignments, now: CpuSnapshot, pool: CpuPool = 'ordinary'): CpuSet =>
  FREE[pool](state, now);

const freeOf = (pool: CpuPool) =>
  oncePerLast((state: Assignments, now: CpuSnapshot) =>
    grantableCpus(state.settings, now, pool).difference(exclusiveCpus(state)),
  );
const FREE = { ordinary: freeOf('ordinary'), isolated: freeOf('isolated') };

// Shared until granted.
const shareableCpus = oncePerLast((settings: MachineSettings, now: CpuSnapshot) => {
  const shareable = universe(settings, now).difference(isolatedPool(settings, now));
  return settings.strictCPUReservation ? shareable.difference(settings.reservedSystemCPUs) : shareable;
});

/** Where everything without exclusive CPUs runs. Derived, never stored. */
export const sharedPool = oncePerLast((state: Assignments, now: CpuSnapshot) =>
  shareableCpus(state.settings, now).difference(exclusiveCpus(state)),
);
