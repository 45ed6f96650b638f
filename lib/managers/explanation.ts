// Explanation: why a pod was rejected, in fields and in words. Pure.
import type { TopologyManagerPolicy } from '../config.js';
import type { HintFamily } from '../hints.js';
import { podTotal } from '../pod-request.js';
import { cpusOf, universe } from '../state/assignments.js';
import { available, type Draft, exclusiveCount } from './cpu-manager.js';

/** Why a pod is not admitted, in the kubelet's words. */
export type AdmissionReason = 'TopologyAffinityError' | 'SMTAlignmentError' | 'UnexpectedAdmissionError';

/** What a NUMA node has of a resource. */
export interface NodeAmount {
  readonly node: number;
  /** What is free now. */
  readonly free: number;
  /** What the node could ever give: for CPUs, the managed ones that are not reserved. */
  readonly possible: number;
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
  /** CPUs, bytes or devices; null where the provider did not say. */
  readonly asked: number | null;
  /** Only for resources that numalign manages itself. */
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
  /** The hints offered, by resource. */
  readonly offered: Readonly<Record<string, HintFamily>>;
  readonly admittedUnder: readonly TopologyManagerPolicy[];
}

/** Everybody with exclusive CPUs. */
export function holdersOf({ state }: Pick<Draft, 'state'>): Holder[] {
  return state.pods
    .map((pod) => ({ id: pod.uid, name: pod.name, cpus: cpusOf(pod).toString(), pid: pod.owner.pid }))
    .filter(({ cpus }) => cpus !== '');
}

function cpuExplanation({ draft, container, offered }: RejectionFacts): ResourceExplanation {
  const { topology, state, pod, placement, allowed } = draft;
  const found = pod.containers.find(({ name }) => name === container);
  const count = (of: (typeof pod.containers)[number]) => exclusiveCount(pod, of, placement);
  const free = available(draft);
  const managed = universe(state.settings, topology.cpus);
  const reserved = managed.intersection(state.settings.reservedSystemCPUs);
  const unusable = available({ ...draft, allowed: topology.cpus }).difference(allowed);
  const possible = managed.difference(reserved).intersection(allowed);
  return {
    resource: 'cpu',
    asked: found ? count(found) : podTotal(pod, count),
    nodes: topology.nodes
      .filter(({ cpus }) => !cpus.isEmpty)
      .map(({ id, cpus }) => ({
        node: id,
        free: cpus.intersection(free).size,
        possible: cpus.intersection(possible).size,
      })),
    reserved: reserved.isEmpty ? null : reserved.toString(),
    unusable: unusable.isEmpty ? null : unusable.toString(),
    hints: offered.cpu ?? null,
    holders: holdersOf(draft),
  };
}

function otherExplanations({ draft: { pod }, container, offered }: RejectionFacts): ResourceExplanation[] {
  const found = pod.containers.find(({ name }) => name === container);
  return Object.entries(offered)
    .filter(([resource]) => resource !== 'cpu')
    .map(([resource, hints]) => ({
      resource,
      asked: (found ? found.requests[resource] : podTotal(pod, ({ requests }) => requests[resource] ?? 0)) ?? null,
      nodes: [],
      reserved: null,
      unusable: null,
      hints,
      holders: [],
    }));
}

const HINTS_IN_TEXT = 6;

function hintsText(hints: HintFamily | null): string[] {
  if (hints === null) return [];
  const shown: string[] = [];
  for (const { nodes, preferred } of hints) {
    if (shown.length === HINTS_IN_TEXT) {
      shown.push('…');
      break;
    }
    shown.push(`${nodes === null ? 'any' : `{${nodes}}`}${preferred ? ' preferred' : ''}`);
  }
  return [`  hints offered: ${shown.join(', ') || 'none'}`];
}

function resourceText({ resource, asked, nodes, reserved, unusable, hints, holders }: ResourceExplanation): string[] {
  return [
    `${resource}${asked === null ? '' : `: ${asked} asked for`}`,
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
