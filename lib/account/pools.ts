// The pools of CPUs: what can be granted, what is free, and what everybody shares. Pure.
import type { CpuSet } from '../machine/cpu-set.js';
import type { Assignments, MachineSettings } from './assignments.js';
import { cpusOfPods } from './cpus-of-pods.js';
import { kubeletCpus } from './kubelet-record.js';
import type { CpuPool } from './pod-holdings.js';

/** Every CPU that somebody holds exclusively: a grant, or a pod of the kubelet's. */
export function exclusiveCpus({ pods, kubelet }: Pick<Assignments, 'pods' | 'kubelet'>): CpuSet {
  const granted = cpusOfPods(pods);
  return kubelet === null ? granted : granted.union(kubeletCpus(kubelet));
}

/** What the kernel tells of a machine's CPUs at one moment, read before anything is decided. */
export interface CpuSnapshot {
  readonly online: CpuSet;
  /** Those that it keeps ordinary work off. */
  readonly isolated: CpuSet;
}

/** The managed CPUs among `online`: what numalign hands out or shares. */
export function universe(settings: MachineSettings, { online }: Pick<CpuSnapshot, 'online'>): CpuSet {
  return settings.managedCPUs === null ? online : settings.managedCPUs.intersection(online);
}

// Asked for by every plan, which finds it as the plan before did, on a state or on the settings of many.
function oncePerMoment<Of extends object>(
  find: (of: Of, now: CpuSnapshot) => CpuSet,
): (of: Of, now: CpuSnapshot) => CpuSet {
  const found = new WeakMap<Of, { readonly now: CpuSnapshot; readonly cpus: CpuSet }>();
  return (of, now) => {
    let known = found.get(of);
    if (known?.now !== now) {
      known = { now, cpus: find(of, now) };
      found.set(of, known);
    }
    return known.cpus;
  };
}

/** The managed CPUs that are isolated, granted or not. Those that are reserved stay so. */
export const isolatedPool = oncePerMoment((settings: MachineSettings, now) => {
  const isolated = settings.isolatedCPUs ?? now.isolated;
  return universe(settings, now).intersection(isolated).difference(settings.reservedSystemCPUs);
});

const ordinaryPool = oncePerMoment((settings: MachineSettings, now) =>
  universe(settings, now).difference(settings.reservedSystemCPUs).difference(isolatedPool(settings, now)),
);

/** Managed CPUs of a pool, granted or not, reserved ones left out. */
export function grantableCpus(settings: MachineSettings, now: CpuSnapshot, pool: CpuPool): CpuSet {
  return pool === 'isolated' ? isolatedPool(settings, now) : ordinaryPool(settings, now);
}

/** What a new grant may take of a pool: CPUs that nobody holds, reserved ones left out. */
export function freeCpus(state: Assignments, now: CpuSnapshot, pool: CpuPool = 'ordinary'): CpuSet {
  return pool === 'isolated' ? freeIsolated(state, now) : freeOrdinary(state, now);
}

const freeOf = (pool: CpuPool) =>
  oncePerMoment((state: Assignments, now) =>
    grantableCpus(state.settings, now, pool).difference(exclusiveCpus(state)),
  );
const freeOrdinary = freeOf('ordinary');
const freeIsolated = freeOf('isolated');

// Shared until granted.
const shareableCpus = oncePerMoment((settings: MachineSettings, now) => {
  const shareable = universe(settings, now).difference(isolatedPool(settings, now));
  return settings.strictCPUReservation ? shareable.difference(settings.reservedSystemCPUs) : shareable;
});

/** Where everything without exclusive CPUs runs. Derived, never stored. */
export const sharedPool = oncePerMoment((state: Assignments, now) =>
  shareableCpus(state.settings, now).difference(exclusiveCpus(state)),
);
