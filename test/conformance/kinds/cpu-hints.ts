// cpu-hints: the NUMA nodes from which a container could get its CPUs. Replayed through
// Topology.cpuHints.
import type { MachineJson } from '../../../lib/entries/topology.js';
import {
  attempt,
  type Case,
  describeError,
  diverged,
  failed,
  type Kind,
  passed,
  type Result,
} from '../case.js';
import { idsOf } from '../cpu-list.js';
import { type RecordedHint, recordedHint } from '../hint.js';
import { coreSumsOf, groupsOf, hasHalfCores, isIrregular, wholeCoresOf } from '../machine.js';

interface CpuHintsCase extends Case {
  readonly topology: string;
  readonly available: string;
  readonly reusable: string;
  readonly assigned?: string;
  readonly request: number;
  readonly options: { readonly fullPhysicalCpusOnly?: boolean; readonly alignBySocket?: boolean };
  readonly hints: readonly RecordedHint[];
}

/** All masks over these nodes but the empty one, in the order of hints. */
function masksOf(nodes: readonly number[]): number[][] {
  const masks: number[][] = [[]];
  for (const node of nodes) masks.push(...masks.map((mask) => [...mask, node]));
  const firstDifference = (a: number[], b: number[]) =>
    a.map((node, i) => node - b[i]!).find((d) => d !== 0) ?? 0;
  return masks.slice(1).sort((a, b) => a.length - b.length || firstDifference(a, b));
}

/** CPUs that count for a hint; one that is listed twice counts twice. */
type Counted = readonly number[];

/** What upstream counts: single CPUs, and those twice that are both free and reusable. */
function recordedCount({ available, reusable, assigned }: CpuHintsCase): Counted {
  return assigned === undefined ? [...idsOf(available), ...idsOf(reusable)] : [...idsOf(assigned)];
}

/** What is intended to count: each CPU once, and whole cores where only these are handed out. */
function intendedCount(vector: CpuHintsCase, machine: MachineJson): Counted {
  const counted = new Set(recordedCount(vector));
  // What is no multiple fails in any case, and its hints are those of single CPUs.
  const isByCore =
    vector.options.fullPhysicalCpusOnly === true &&
    vector.assigned === undefined &&
    vector.request % Math.floor(machine.numCpus / machine.numCores) === 0;
  return [...(isByCore ? wholeCoresOf(machine, counted) : counted)];
}

/** Tells if nodes with these CPUs could have the request, of the counted CPUs or on the empty machine. */
interface Fit {
  readonly now: (inside: ReadonlySet<number>) => boolean;
  readonly ever: (inside: ReadonlySet<number>) => boolean;
}

const fitOf = (counted: Counted, { request }: CpuHintsCase): Fit => ({
  now: (inside) => counted.filter((cpu) => inside.has(cpu)).length >= request,
  ever: (inside) => inside.size >= request,
});

/** On a machine whose cores differ in size, whole cores must add up to the request. */
function intendedFit(vector: CpuHintsCase, machine: MachineJson): Fit {
  const { request, options, assigned } = vector;
  const counted = intendedCount(vector, machine);
  const addsUp = (cpus: Iterable<number>) => coreSumsOf(machine, new Set(cpus)).has(request);
  if (options.fullPhysicalCpusOnly !== true || assigned !== undefined || !addsUp(counted))
    return fitOf(counted, vector);
  return { now: (inside) => addsUp(counted.filter((cpu) => inside.has(cpu))), ever: addsUp };
}

/** The hints on nodes that fit. */
function hintsOf({ now, ever }: Fit, vector: CpuHintsCase, machine: MachineJson): RecordedHint[] {
  const { request, options, assigned } = vector;
  if (assigned !== undefined && idsOf(assigned).size !== request) return [];
  const reusable = assigned === undefined ? [...idsOf(vector.reusable)] : [];
  const nodes = groupsOf(machine, 'numa');
  const sockets = [...groupsOf(machine, 'socket').values()];
  const masks = masksOf([...nodes.keys()].sort((a, b) => a - b));
  const cpusIn = (mask: number[]) => new Set(mask.flatMap((node) => nodes.get(node)!));
  const fewestNodes = masks.find((mask) => ever(cpusIn(mask)))?.length ?? nodes.size;
  const fewestSockets = Math.ceil(fewestNodes / Math.floor(nodes.size / sockets.length));
  return masks.flatMap((mask) => {
    const inside = cpusIn(mask);
    const has = (cpu: number) => inside.has(cpu);
    if (!reusable.every(has) || !now(inside)) return [];
    const used = sockets.filter((socket) => socket.some(has)).length;
    const isAligned = options.alignBySocket === true && used === fewestSockets;
    return [{ nodes: mask, preferred: mask.length === fewestNodes || isAligned }];
  });
}

/**
 * The letter under which another answer is numalign's intention: what is recorded is what upstream
 * counts.
 */
function letterOf(vector: CpuHintsCase, machine: MachineJson): string | undefined {
  const { available, reusable, options, hints } = vector;
  if (
    JSON.stringify(hints) !== JSON.stringify(hintsOf(fitOf(recordedCount(vector), vector), vector, machine))
  )
    return undefined;
  const free = idsOf(available);
  if ([...idsOf(reusable)].some((cpu) => free.has(cpu))) return 'D4';
  if (!options.fullPhysicalCpusOnly) return undefined;
  if (hasHalfCores(machine, free)) return 'A4';
  return isIrregular(machine) ? 'A1' : undefined;
}

const show = (hints: readonly RecordedHint[]) =>
  `hints ${hints.map(({ nodes, preferred }) => `[${nodes}]${preferred ? '!' : ''}`).join(' ') || 'none'}`;

export const cpuHints: Kind = {
  name: 'cpu-hints',

  matches({ topology, available, request, hints }) {
    return (
      typeof topology === 'string' &&
      typeof available === 'string' &&
      typeof request === 'number' &&
      Array.isArray(hints)
    );
  },

  async run(theCase, { machine }): Promise<Result> {
    const vector = theCase as CpuHintsCase;
    const { topology, recorded } = await machine(vector.topology);
    const { request, available, reusable, assigned, options } = vector;
    const answer = attempt(() =>
      Array.from(
        topology.cpuHints({
          request,
          available,
          reusable,
          ...(assigned !== undefined && { assigned }),
          ...options,
        }),
        recordedHint,
      ),
    );
    if ('error' in answer) return failed(show(vector.hints), describeError(answer.error));
    if (JSON.stringify(answer.value) === JSON.stringify(vector.hints)) return passed;
    const letter = letterOf(vector, recorded);
    const intended = hintsOf(intendedFit(vector, recorded), vector, recorded);
    if (letter && JSON.stringify(answer.value) === JSON.stringify(intended)) return diverged(letter);
    return failed(show(vector.hints), `${show(answer.value)} (${show(intended)} are intended)`);
  },
};
