// Explanation: why a pod was rejected, in fields and in words. Pure.
import type { AdmissionReason } from '../base/refusal.js';
import { printable } from '../base/text/printable.js';
import type { TopologyManagerPolicy } from '../input/policies.js';
import { isMemoryType } from '../input/values/memory-types.js';
import { formatBytes } from '../input/values/quantity.js';
import type { HintFamily } from '../machine/hints.js';
import { everGrantable, mostEver } from './cpus/cpu-limits.js';
import {
  cpuExplanation,
  deviceExplanations,
  memoryExplanations,
  otherExplanations,
  type RejectedRequest,
  type ResourceExplanation,
} from './resource-explanations.js';

/** Why a pod is rejected, see docs/admission.md. */
export interface Explanation {
  /** Why the request is rejected, in the kubelet's words. */
  readonly reason: AdmissionReason;
  /** The container that failed; null: the whole pod (scope `pod`). */
  readonly container: string | null;
  /** The topology policy of the request. */
  readonly policy: TopologyManagerPolicy;
  /** One entry for each resource that the container (or pod) asks for. */
  readonly resources: readonly ResourceExplanation[];
  /** The weaker policies that would admit the pod now, the strictest first. */
  readonly admittedUnder: readonly TopologyManagerPolicy[];
  /** The explanation for people, in several lines. */
  readonly text: string;
}

export interface RejectionFacts extends RejectedRequest {
  readonly reason: AdmissionReason;
  readonly message: string;
  /** The number of CPUs that `message` names, if it is about CPUs. */
  readonly messageCpus?: unknown;
  readonly admittedUnder: readonly TopologyManagerPolicy[];
}

const HINTS_IN_TEXT = 6;

function hintsText(hints: HintFamily | null): string[] {
  if (hints === null) return [];
  const shown = hints
    .first(HINTS_IN_TEXT + 1)
    .map(
      ({ nodes, preferred }) => `${nodes === null ? 'any' : `{${nodes}}`}${preferred ? ' preferred' : ''}`,
    );
  if (shown.length > HINTS_IN_TEXT) shown[HINTS_IN_TEXT] = '…';
  return [`  hints: ${shown.join(', ') || (hints.isEmpty ? 'none' : '…')}`];
}

// `cpusEver`: how many CPUs one request can ever have. `messageCpus`: the number of CPUs that the
// message of the rejection names already.
function resourceText(explanation: ResourceExplanation, cpusEver: number, messageCpus: unknown): string[] {
  const { resource, provider, asked, nodes, reserved, isolated, unusable, hints, holders } = explanation;
  const isMemory = provider === null && isMemoryType(resource);
  const amount = (number: number) => (isMemory ? formatBytes(number) : number);
  const isNowhere = nodes.length === 0 && isMemory;
  const isCpu = resource === 'cpu' && provider === null;
  const isStated = isCpu && asked === messageCpus;
  const facts = [
    ...(isStated ? [] : [`${amount(asked)} requested`]),
    ...(isCpu && !isStated && asked > cpusEver ? [`at most ${cpusEver} can ever be granted`] : []),
    ...(isNowhere ? ['no NUMA node has any'] : []),
    ...(nodes.length === 0
      ? []
      : [
          `free by NUMA node: ${nodes.map((n) => `${n.node}: ${amount(n.free)} of ${amount(n.possible)}`).join(', ')}`,
        ]),
  ];
  const why = isCpu
    ? 'outside the cpuset or mask of this process'
    : isMemory
      ? 'of tiers that it does not name (memoryTiers)'
      : 'unhealthy';
  return [
    `${resource}: ${facts.join('; ')}`,
    ...hintsText(hints),
    ...(reserved === null ? [] : [`  reserved: ${reserved}`]),
    ...(isolated === null ? [] : [`  isolated: ${isolated}, only for requests for isolated CPUs`]),
    ...(unusable === null ? [] : [`  ${why}: ${unusable}`]),
    ...holders.map(
      ({ name, holds, pid }) => `  held by "${name}"${pid === null ? '' : ` of process ${pid}`}: ${holds}`,
    ),
  ];
}

/** Explains a rejection. */
export function explain(facts: RejectionFacts): Explanation {
  const { draft, reason, message, messageCpus, container, admittedUnder } = facts;
  const { topologyPolicy } = draft.placement;
  const cpu = cpuExplanation(facts);
  const cpusEver = mostEver(draft, everGrantable(draft, cpu.asked));
  const resources = [
    ...deviceExplanations(facts),
    ...(cpu.asked ? [cpu] : []),
    ...memoryExplanations(facts),
    ...otherExplanations(facts),
  ];
  const [strictest] = admittedUnder;
  const text = [
    `${reason}: ${container === null ? 'the pod' : `container ${container}`}: ${message}`,
    ...resources.flatMap((resource) => resourceText(resource, cpusEver, messageCpus)),
    strictest === undefined
      ? 'no policy would admit it now'
      : `${strictest} would admit it now, ${topologyPolicy} does not`,
  ]
    // Names and ids come from outside and may contain newlines.
    .map(printable)
    .join('\n');
  return { reason, container, policy: topologyPolicy, resources, admittedUnder, text };
}
