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
import { groupsOf, hasHalfCores, isIrregular } from '../machine.js';

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

/**
 * Which CPUs may count for a hint at most, and which must at least: they differ where only whole
 * cores are handed out.
 */
function countedCpus(vector: CpuHintsCase, machine: MachineJson) {
  const [available, reusable] = [idsOf(vector.available), idsOf(vector.reusable)];
  const free = new Set([...available, ...reusable]);
  const isWhole = (core: number[]) =>
    core.every((cpu) => available.has(cpu)) || core.every((cpu) => reusable.has(cpu));
  const wholeCores = [...groupsOf(machine, 'core').values()].filter(isWhole);
  // What is no multiple fails in any case, and its hints are those of single CPUs.
  const isByCore =
    vector.options.fullPhysicalCpusOnly &&
    vector.request % Math.floor(machine.numCpus / machine.numCores) === 0;
  return { atMost: free, atLeast: isByCore ? new Set(wholeCores.flat()) : free, reusable };
}

/** What is wrong with hints as an answer to this case, whatever is recorded. */
function flawOf(
  hints: readonly RecordedHint[],
  vector: CpuHintsCase,
  machine: MachineJson,
): string | undefined {
  const { request, options, assigned } = vector;
  const held = assigned && idsOf(assigned);
  if (held && held.size !== request)
    return hints.length > 0 ? 'hints for CPUs that are not as many' : undefined;
  const { atMost, atLeast, reusable } = held
    ? { atMost: held, atLeast: held, reusable: new Set<number>() }
    : countedCpus(vector, machine);

  const nodes = groupsOf(machine, 'numa');
  const sockets = groupsOf(machine, 'socket');
  const cpusIn = (mask: number[]) => mask.flatMap((node) => nodes.get(node)!);
  const count = (mask: number[], counted: ReadonlySet<number>) =>
    cpusIn(mask).filter((cpu) => counted.has(cpu)).length;
  const masks = masksOf([...nodes.keys()].sort((a, b) => a - b));
  const fewestNodes = masks.find((mask) => cpusIn(mask).length >= request)?.length ?? nodes.size;
  const fewestSockets = Math.ceil(fewestNodes / Math.floor(nodes.size / sockets.size));
  const isSocketAligned = (mask: number[]) =>
    [...sockets.values()].filter((socket) => cpusIn(mask).some((cpu) => socket.includes(cpu))).length ===
    fewestSockets;

  let next = 0;
  for (const mask of masks) {
    const hint = hints[next];
    const hasReusable = count(mask, reusable) === reusable.size;
    if (!hint || JSON.stringify(hint.nodes) !== JSON.stringify(mask)) {
      if (hasReusable && count(mask, atLeast) >= request) return `no hint for [${mask}]`;
      continue;
    }
    if (!hasReusable) return `[${mask}] lacks a node of the reusable CPUs`;
    if (count(mask, atMost) < request) return `[${mask}] has too few CPUs`;
    const isPreferred =
      mask.length === fewestNodes || (options.alignBySocket === true && isSocketAligned(mask));
    if (hint.preferred !== isPreferred) return `[${mask}] is ${isPreferred ? 'not ' : ''}preferred`;
    next += 1;
  }
  // Out of order, twice, or not of nodes with CPUs.
  return next < hints.length ? `hint ${next} is out of place` : undefined;
}

/** The letter under which another answer than the recorded one may be numalign's intention. */
function letterOf({ available, reusable, options }: CpuHintsCase, machine: MachineJson): string | undefined {
  const free = idsOf(available);
  if ([...idsOf(reusable)].some((cpu) => free.has(cpu))) return 'D4';
  if (options.fullPhysicalCpusOnly && hasHalfCores(machine, free)) return 'A4';
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
    const flaw = flawOf(answer.value, vector, recorded);
    if (letter && flaw === undefined) return diverged(letter);
    return failed(show(vector.hints), `${show(answer.value)}${flaw === undefined ? '' : ` (${flaw})`}`);
  },
};
