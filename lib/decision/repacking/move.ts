// Move: a grant that is placed on other NUMA nodes beside itself, by a decision as any other. Pure.
import type { Assignments } from '../../account/assignments.js';
import { releaseMemory } from '../../account/booked-memory.js';
import type { ContainerAssignment, PodAssignment } from '../../account/pod-assignment.js';
import { replacePod } from '../../account/pod-changes.js';
import { memoryOf, nodesOf, presentCpus } from '../../account/pod-holdings.js';
import { NodeSet } from '../../machine/cpu-set.js';
import { HintFamily } from '../../machine/hints.js';
import type { Topology } from '../../machine/topology.js';
import { decideWhether } from '../decision.js';
import type { DeviceResources } from '../devices/device-resources.js';
import type { HintProvider } from '../hints/hint-provider.js';
import type { Question } from '../question.js';
import type { MovableGrant, Target } from './movable-grant.js';
import type { NodeChoice } from './node-choices.js';

export interface Move {
  readonly uid: string;
  readonly before: PodAssignment;
  readonly after: PodAssignment;
}

/** A move, and the state after it. */
export interface StateAfterMove {
  readonly move: Move;
  readonly state: Assignments;
}

const NO_DEVICES: DeviceResources = new Map();

/**
 * Moves a grant to all of these NUMA nodes and no others. Meanwhile it has its old place too, so
 * that the new one is beside it. undefined: there is no room, or it would be worse off.
 */
export function moveOf(
  question: Question,
  state: Assignments,
  grant: MovableGrant,
  { choice, keepsMemory }: Target,
): StateAfterMove | undefined {
  const { topology, present, hugepages } = question;
  const { pod, request, requestOfCpus, memory } = grant;
  const decision = decideWhether({
    topology,
    present,
    state,
    request: keepsMemory ? requestOfCpus : request,
    resources: NO_DEVICES,
    providers: [providerNear(pod, topology, choice, keepsMemory)],
    owner: pod.owner,
    uid: pod.uid,
    trialUid: pod.uid,
    now: pod.admittedAt,
    dryRun: true,
    hugepages,
    within: choice.cpus,
  });
  if (!decision) return undefined;
  const after = podAfter(pod, decision.pod, keepsMemory);
  const nodes = topology.nodesOf(presentCpus(after)).union(nodesOf(memoryOf(after)));
  if (!nodes.equals(choice.nodes) || isWorse(pod, after)) return undefined;
  const booked = keepsMemory ? state.memory : memory.reduce(releaseMemory, decision.next().memory);
  return { move: { uid: pod.uid, before: pod, after }, state: replacePod(state, after, booked) };
}

// What was aligned stays so, and the amounts are the same whatever the options of today are.
function isWorse({ containers }: PodAssignment, after: PodAssignment): boolean {
  return containers.some((before, i) => {
    const { cpus, hint, memory } = after.containers[i]!;
    return (
      cpus.size !== before.cpus.size ||
      bytesOf(memory) !== bytesOf(before.memory) ||
      (before.hint.preferred && !hint.preferred)
    );
  });
}

const bytesOf = (memory: ContainerAssignment['memory']) => memory.reduce((sum, { bytes }) => sum + bytes, 0);

function podAfter(pod: PodAssignment, placed: PodAssignment, keepsMemory: boolean): PodAssignment {
  const containers = pod.containers.map((before, i): ContainerAssignment => {
    const { cpus, held, hint, memory } = placed.containers[i]!;
    return {
      ...before,
      cpus,
      held,
      // Under `none` there is no hint.
      hint: pod.policy === 'none' ? before.hint : hint,
      memory: keepsMemory ? before.memory : memory,
    };
  });
  const { booking } = placed;
  const memory = keepsMemory ? pod.booking?.memory : booking?.memory;
  return { ...pod, containers, booking: booking && { ...booking, memory: memory ?? booking.memory } };
}

// A provider that offers nothing but these nodes: each container is aligned among them, with the
// memory that it keeps.
function providerNear(
  pod: PodAssignment,
  { numaNodes }: Topology,
  { hints }: NodeChoice,
  keepsMemory: boolean,
): HintProvider {
  const near = (container: string | null): HintFamily => {
    if (!keepsMemory) return hints;
    const own = pod.booking ? pod : { ...pod, containers: containersFor(pod, container) };
    const must = nodesOf(memoryOf(own));
    if (must.isEmpty) return hints;
    return HintFamily.from(
      [...hints].filter(({ nodes }) => must.isSubsetOf(nodes ?? NodeSet.EMPTY)),
      numaNodes,
    );
  };
  return {
    name: 'repacking',
    hints: ({ container }) => ({ repacking: near(container) }),
    allocate: () => {},
    release: () => {},
  };
}

function containersFor({ containers }: PodAssignment, name: string | null): PodAssignment['containers'] {
  return name === null ? containers : containers.filter((container) => container.name === name);
}
