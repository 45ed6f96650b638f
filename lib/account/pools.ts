// The pools of CPUs: what can be granted, what is free, and what everybody shares. Pure.
import type { CpuSet } from '../machine/cpu-set.js';
import type { Assignments, MachineSettings } from './assignments.js';
import { cpusOfPods } from './cpus-of-pods.js';
import type { CpuPool } from './pod-holdings.js';

/** Every CPU that somebody holds exclusively. */
export function exclusiveCpus({ pods }: Pick<Assignments, 'pods'>): CpuSet {
  return cpusOfPods(pods);
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

/** The managed CPUs that are isolated, granted or not. Those that are reserved stay so. */
export function isolatedPool(settings: MachineSettings, now: CpuSnapshot): CpuSet {
  const isolated = settings.isolatedCPUs ?? now.isolated;
  return universe(settings, now).intersection(isolated).difference(settings.reservedSystemCPUs);
}

/** Managed CPUs of a pool, granted or not, reserved ones left out. */
export function grantableCpus(settings: MachineSettings, now: CpuSnapshot, pool: CpuPool): CpuSet {
  const isolated = isolatedPool(settings, now);
  if (pool === 'isolated') return isolated;
  return universe(settings, now).difference(settings.reservedSystemCPUs).difference(isolated);
}

/** What a new grant may take of a pool: CPUs that nobody holds, reserved ones left out. */
export function freeCpus(state: Assignments, now: CpuSnapshot, pool: CpuPool = 'ordinary'): CpuSet {
  return pool === 'isolated' ? freeIsolated(state, now) : freeOrdinary(state, now);
}

// Asked for by every plan on a state, which finds it as the plan before did.
function oncePerMoment(
  find: (state: Assignments, now: CpuSnapshot) => CpuSet,
): (state: Assignments, now: CpuSnapshot) => CpuSet {
  const found = new WeakMap<Assignments, { readonly now: CpuSnapshot; readonly cpus: CpuSet }>();
  return (state, now) => {
    let known = found.get(state);
    if (known?.now !== now) {
      known = { now, cpus: find(state, now) };
      found.set(state, known);
    }
    return known.cpus;
  };
}

const freeOf = (pool: CpuPool) =>
  oncePerMoment((state, now) => grantableCpus(state.settings, now, pool).difference(exclusiveCpus(state)));
const freeOrdinary = freeOf('ordinary');
const freeIsolated = freeOf('isolated');

/** Where everything without exclusive CPUs runs. Derived, never stored. */
export const sharedPool = oncePerMoment((state, now) => {
  const { settings } = state;
  const shared = universe(settings, now)
    .difference(isolatedPool(settings, now))
    .difference(exclusiveCpus(state));
  return settings.strictCPUReservation ? shared.difference(settings.reservedSystemCPUs) : shared;
});
