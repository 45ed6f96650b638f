// Explanation: why a pod was rejected, in fields and in words. Pure.
import type { TopologyManagerPolicy } from '../config.js';
import type { CpuSet } from '../cpu-set.js';
import type { NodeAmount } from '../hint-provider.js';
import type { HintFamily } from '../hints.js';
import { podTotal, requestOf } from '../pod-request.js';
import { cpusOf, freeCpus, universe } from '../state/assignments.js';
import { choices, type Draft, exclusiveCount, podExclusiveCount } from './cpu-manager.js';

/** Why a pod is not admitted, in the kubelet's words. */
export type AdmissionReason = 'TopologyAffinityError' | 'SMTAlignmentError' | 'UnexpectedAdmissionError';

/** The hints of one resource that went into a merge. */
export interface OfferedHints {
  /** The custom provider's name; null: numalign itself. */
  readonly provider: string | null;
  readonly resource: string;
  readonly hints: HintFamily;
}

/** Who holds what is missing. */
export interface Holder {
  readonly id: string;
  readonly name: string;
  readonly cpus: string;
  readonly pid: number | null;
}

export interface ResourceExplanation {
  readonly resource: string;
  /** The custom provider's name; null: numalign itself. */
  readonly provider: string | null;
  /** CPUs; of other resources whole units. */
  readonly asked: number;
  /** Empty where a custom provider does not tell. */
  readonly nodes: readonly NodeAmount[];
  /** What is kept for the system, for people; null: nothing. */
  readonly reserved: string | null;
  /** What is free, but closed to the process that asks, for people; null: nothing. */
  readonly unusable: string | null;
  /** The hints that were offered. */
  readonly hints: HintFamily | null;
  readonly holders: readonly Holder[];
}

export interface Explanation {
  readonly reason: AdmissionReason;
  /** The container that failed; null: the pod as a whole (scope `pod`). */
  readonly container: string | null;
  readonly policy: TopologyManagerPolicy;
  readonly resources: readonly ResourceExplanation[];
  /** The weaker policies that would admit the pod now, the strictest of them first. */
  readonly admittedUnder: readonly TopologyManagerPolicy[];
  /** All of it for people, several lines. */
  readonly text: string;
}

export interface RejectionFacts {
  readonly draft: Draft;
  readonly reason: AdmissionReason;
  readonly message: string;
  readonly container: string | null;
  readonly offered: readonly OfferedHints[];
  /** What custom providers tell of their resources. */
  readonly amounts: ReadonlyMap<OfferedHints, readonly NodeAmount[]>;
  readonly admittedUnder: readonly TopologyManagerPolicy[];
}

/** Everybody with exclusive CPUs; the pod's own containers last, where they have some already. */
export function holdersOf({ state, pod, taken }: Draft): Holder[] {
  const others = state.pods.map((p) => ({ id: p.uid, name: p.name, cpus: cpusOf(p).toString(), pid: p.owner.pid }));
  const own = { id: pod.uid ?? '', name: 'the pod itself', cpus: taken.toString(), pid: null };
  return [...others, own].filter(({ cpus }) => cpus !== '');
}

function listOrNull(cpus: CpuSet): string | null {
  return cpus.isEmpty ? null : cpus.toString();
}

function cpuExplanation({ draft, container, offered }: RejectionFacts): ResourceExplanation {
  const { topology, state, pod, placement, allowed, taken } = draft;
  const found = pod.containers.find(({ name }) => name === container);
  const asked = found ? exclusiveCount(pod, found, placement) : podExclusiveCount(pod, placement);
  // Where siblings are held, the machine has one CPU a core.
  const { machine, from } = choices(draft, asked);
  const managed = universe(state.settings, topology.cpus);
  const reserved = managed.intersection(state.settings.reservedSystemCPUs);
  const possible = managed.difference(reserved).intersection(allowed).intersection(machine.cpus);
  return {
    resource: 'cpu',
    provider: null,
    asked,
    nodes: topology.nodes
      .filter(({ cpus }) => !cpus.isEmpty)
      .map(({ id, cpus }) => ({
        node: id,
        free: cpus.intersection(from).size,
        possible: cpus.intersection(possible).size,
      })),
    reserved: listOrNull(reserved),
    unusable: listOrNull(freeCpus(state, topology.cpus).difference(taken).difference(allowed)),
    hints: offered.find(({ provider }) => provider === null)?.hints ?? null,
    holders: holdersOf(draft),
  };
}

function otherExplanations({ draft: { pod }, container, offered, amounts }: RejectionFacts): ResourceExplanation[] {
  const found = pod.containers.find(({ name }) => name === container);
  const asked = (resource: string) =>
    found ? requestOf(found, resource) : podTotal(pod, (each) => requestOf(each, resource));
  return offered
    .filter(({ provider }) => provider !== null)
    .map((each) => ({
      ...each,
      asked: asked(each.resource),
      nodes: amounts.get(each) ?? [],
      reserved: null,
      unusable: null,
      holders: [],
    }));
}

const HINTS_IN_TEXT = 6;

function hintsText(hints: HintFamily | null): string[] {
  if (hints === null) return [];
  const shown = hints
    .first(HINTS_IN_TEXT + 1)
    .map(({ nodes, preferred }) => `${nodes === null ? 'any' : `{${nodes}}`}${preferred ? ' preferred' : ''}`);
  if (shown.length > HINTS_IN_TEXT) shown[HINTS_IN_TEXT] = '…';
  return [`  hints offered: ${shown.join(', ') || 'none'}`];
}

function resourceText({ resource, asked, nodes, reserved, unusable, hints, holders }: ResourceExplanation): string[] {
  return [
    `${resource}: ${asked} asked for`,
    ...(nodes.length === 0
      ? []
      : [`  free by NUMA node: ${nodes.map((n) => `${n.node}: ${n.free} of ${n.possible}`).join(', ')}`]),
    ...hintsText(hints),
    ...(reserved === null ? [] : [`  reserved: ${reserved}`]),
    ...(unusable === null ? [] : [`  outside the cpuset of this process: ${unusable}`]),
    ...holders.map(({ name, cpus, pid }) => `  held by "${name}"${pid === null ? '' : ` of process ${pid}`}: ${cpus}`),
  ];
}

/** Explains a rejection. */
export function explain(facts: RejectionFacts): Explanation {
  const { draft, reason, message, container, admittedUnder } = facts;
  const { topologyPolicy } = draft.placement;
  const cpu = cpuExplanation(facts);
  const resources = [...(cpu.asked ? [cpu] : []), ...otherExplanations(facts)];
  const [strictest] = admittedUnder;
  const text = [
    `${reason}: ${container === null ? 'the pod' : `container ${container}`}: ${message}`,
    ...resources.flatMap(resourceText),
    strictest === undefined
      ? 'no policy would admit it at present'
      : `${strictest} would admit it at present, ${topologyPolicy} does not`,
  ].join('\n');
  return { reason, container, policy: topologyPolicy, resources, admittedUnder, text };
}
