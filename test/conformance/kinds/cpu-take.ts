// cpu-take: which CPUs are chosen out of those that are free. Replayed through Topology.bestFit.
import type { BestFitOptions, MachineJson } from '../../../lib/entries/topology.js';
import {
  attempt,
  type Case,
  describeError,
  diverged,
  failed,
  type Kind,
  passed,
  type Result,
  versionOf,
} from '../case.js';
import { idsOf, listOf } from '../cpu-list.js';
import { kubeletTake } from '../kubelet-take.js';
import { countL3Groups, isIrregular } from '../machine.js';

interface Answer {
  readonly cpus?: string;
  readonly error?: string;
  readonly hang?: boolean;
  readonly panic?: unknown;
}

interface CpuTakeCase extends Case, Answer {
  readonly id: string;
  readonly topology: string;
  readonly available: string;
  readonly count: number;
  readonly options?: BestFitOptions;
  readonly aliasingAffected?: boolean;
  readonly withoutAliasing?: Answer;
}

const ANSWERS = ['cpus', 'error', 'hang', 'panic'] as const satisfies readonly (keyof Answer)[];

/** Whether these are exactly as many CPUs as asked for, all of them free before. */
function isValidPlacement(cpus: string, { available, count }: CpuTakeCase): boolean {
  const [taken, free] = [idsOf(cpus), idsOf(available)];
  return taken.size === count && [...taken].every((cpu) => free.has(cpu));
}

function show({ cpus, error, hang, panic }: Answer): string {
  if (cpus !== undefined) return `CPUs "${cpus}"`;
  if (error !== undefined) return `the error "${error}"`;
  if (hang) return 'any valid placement or an error (upstream never returns)';
  return panic === undefined ? 'a recorded answer' : 'no answer (upstream crashes)';
}

const isShortage = (error: string | undefined) => error?.startsWith('not enough cpus available') ?? false;

/** Whether two answers are the same. Of errors, only that there is one is compared. */
function isSame(ours: Answer, recorded: Answer): boolean {
  return recorded.cpus !== undefined
    ? ours.cpus === recorded.cpus
    : recorded.error !== undefined && ours.error !== undefined;
}

/**
 * A1: what is intended. Packed or spread, that is the kubelet's rule with the own sizes of elements,
 * and what is recorded is its rule with averages; aligned by L3, no more groups than are recorded.
 */
function isOfOwnSizes(vector: CpuTakeCase, ours: string, machine: MachineJson): boolean {
  const { available, count, cpus, options = {}, panic } = vector;
  const free = idsOf(available);
  if (options.distributeAcrossNuma) return true;
  if (options.preferAlignByUncoreCache) {
    const theirs = idsOf(cpus ?? '');
    // Nothing is compared with CPUs that were not free.
    const isFree = theirs.size > 0 && [...theirs].every((cpu) => free.has(cpu));
    return !isFree || countL3Groups(machine, idsOf(ours)) <= countL3Groups(machine, theirs);
  }
  const answer = (sizes: 'average' | 'own') =>
    listOf(kubeletTake(machine, free, count, { ...options, sizes }));
  return ours === answer('own') && (panic !== undefined || cpus === answer('average'));
}

/**
 * F1: as of 1.34 the kubelet splits a core that is wholly free for a single CPU though another is
 * used in part already. Intended is its own rule with that core instead.
 */
function isOfSparedCore(vector: CpuTakeCase, ours: string, machine: MachineJson): boolean {
  const { available, count, cpus, options = {} } = vector;
  const version = versionOf(vector);
  if (version === 'v1.32' || !options.preferAlignByUncoreCache || options.distributeAcrossNuma) return false;
  const answer = (sparesCores: boolean) =>
    listOf(kubeletTake(machine, idsOf(available), count, { ...options, version, sparesCores }));
  return cpus === answer(false) && ours === answer(true);
}

/** The letter under which another answer than the recorded one is numalign's intention, if any. */
function letterOf(vector: CpuTakeCase, ours: Answer, machine: MachineJson): string | undefined {
  const isValid = ours.cpus !== undefined && isValidPlacement(ours.cpus, vector);
  if (!isValid && ours.error === undefined) return undefined;
  if (vector.aliasingAffected && vector.withoutAliasing && isSame(ours, vector.withoutAliasing)) return 'A2';
  if (vector.hang) return 'A3';
  // No machine is so irregular that too few CPUs become enough.
  const isOther = isValid && vector.error === undefined && isIrregular(machine);
  if (isValid && isOfSparedCore(vector, ours.cpus!, machine)) return 'F1';
  if (isOther && isOfOwnSizes(vector, ours.cpus!, machine)) return 'A1';
  return undefined;
}

export const cpuTake: Kind = {
  name: 'cpu-take',

  matches({ topology, available, count, ...rest }) {
    const isAsked =
      typeof topology === 'string' && typeof available === 'string' && typeof count === 'number';
    return isAsked && ANSWERS.some((field) => field in rest);
  },

  async run(theCase, { numalign, machine }): Promise<Result> {
    const vector = theCase as CpuTakeCase;
    const { topology, recorded } = await machine(vector.topology);
    const answer = attempt(() =>
      String(
        topology.bestFit(vector.available, vector.count, {
          ...vector.options,
          kubeletVersion: versionOf(vector),
        }),
      ),
    );
    if ('error' in answer) {
      const code = answer.error instanceof numalign.NumalignError ? answer.error.code : undefined;
      // An upstream error about something else than too few CPUs has no code to stand for it here.
      const isAnswer =
        code === 'ERR_INSUFFICIENT_CPUS' || (code && vector.error && !isShortage(vector.error));
      if (!isAnswer) return failed(show(vector), describeError(answer.error));
    }
    const ours: Answer = 'error' in answer ? { error: describeError(answer.error) } : { cpus: answer.value };
    // Equal is not enough: some recorded answers hand out CPUs that were not free.
    if (isSame(ours, vector) && (ours.cpus === undefined || isValidPlacement(ours.cpus, vector)))
      return passed;
    const letter = letterOf(vector, ours, recorded);
    if (letter) return diverged(letter);
    const wrong =
      ours.cpus !== undefined && !isValidPlacement(ours.cpus, vector)
        ? `, not ${vector.count} of the available CPUs "${vector.available}"`
        : '';
    return failed(
      show(vector) + (vector.withoutAliasing ? `, or ${show(vector.withoutAliasing)} without aliasing` : ''),
      (ours.error ?? show(ours)) + wrong,
    );
  },
};
