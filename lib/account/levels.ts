// Levels of enforcement: how strongly a grant's CPUs are kept from others. Other files ask what a
// level takes, never which one it is: a new level is a row here.
import { NumalignError } from '../base/errors.js';

/** What it takes to keep others off. */
interface Means {
  /** Shared members leave the CPUs. */
  readonly movesMembers: boolean;
  /** Cgroups do that: one holds the shared members, and the grant has its own. */
  readonly usesCgroups: boolean;
  /** The kernel admits only the cgroup of the grant. */
  readonly inPartition: boolean;
  /** The kernel does not balance load over the CPUs. */
  readonly isolatesCpus: boolean;
}

/** The levels, the weakest first. Each takes what the one before takes, and more. */
export const LEVELS = {
  recorded: { movesMembers: false, usesCgroups: false, inPartition: false, isolatesCpus: false },
  members: { movesMembers: true, usesCgroups: false, inPartition: false, isolatesCpus: false },
  cpuset: { movesMembers: true, usesCgroups: true, inPartition: false, isolatesCpus: false },
  partition: { movesMembers: true, usesCgroups: true, inPartition: true, isolatesCpus: false },
  isolated: { movesMembers: true, usesCgroups: true, inPartition: true, isolatesCpus: true },
} as const satisfies Readonly<Record<string, Means>>;

/**
 * How strongly other processes are kept off granted CPUs, from weak to strong. `recorded`: users of
 * numalign get other CPUs. `members`: shared members are moved off by their masks. `cpuset`: a
 * cgroup holds the shared members. `partition`: the kernel admits only the cgroup of the grant.
 * `isolated`: the same, and the kernel does not balance load there. See docs/enforcement.md.
 */
export type EnforcementLevel = keyof typeof LEVELS;

/** How strongly a grant is kept from others, the weakest level first. */
export const ENFORCEMENT_LEVELS = Object.keys(LEVELS) as readonly EnforcementLevel[];

/** The strongest level with these means alone. */
export function strongestLevel(means: Partial<Means>): EnforcementLevel {
  const isWithin = (level: EnforcementLevel) =>
    Object.entries(LEVELS[level]).every(([name, isTaken]) => !isTaken || means[name as keyof Means]);
  return ENFORCEMENT_LEVELS.findLast(isWithin)!;
}

/** Only the record protects the CPUs. */
export const BY_RECORD = strongestLevel({});
/** Only their masks keep shared members off the CPUs. */
export const BY_MASKS = strongestLevel({ movesMembers: true });
/** A cgroup holds the shared members, and the grant has its own. */
export const BY_CGROUPS = strongestLevel({ movesMembers: true, usesCgroups: true });

/** Whether a level keeps others off as strongly as `least` does. */
export function isAtLeast(level: EnforcementLevel, least: EnforcementLevel): boolean {
  return ENFORCEMENT_LEVELS.indexOf(level) >= ENFORCEMENT_LEVELS.indexOf(least);
}

export function weaker(a: EnforcementLevel, b: EnforcementLevel): EnforcementLevel {
  return isAtLeast(a, b) ? b : a;
}

/** The enforcement that a request wants for its grant. */
export interface EnforcementRequest {
  /** The strongest level to try. */
  readonly enforcement: EnforcementLevel;
  /** The weakest acceptable level. */
  readonly require: EnforcementLevel;
  /** What to do if a shared member cannot be moved. */
  readonly unmovableMembers: 'fail' | 'report';
  /** True if the request itself names `enforcement`. It then learns why a weaker level results. */
  readonly isNamed?: boolean;
}

export function enforcementError(
  level: EnforcementLevel,
  require: EnforcementLevel,
  why: readonly string[],
): NumalignError {
  return new NumalignError(
    'ERR_ENFORCEMENT',
    `${require} is required, but only ${level} is possible here: ${why.join('; ')}`,
    { value: level, valid: ENFORCEMENT_LEVELS.slice(ENFORCEMENT_LEVELS.indexOf(require)), why },
  );
}
