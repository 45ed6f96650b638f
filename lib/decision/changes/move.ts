// Move: decides a grant's new place on other NUMA nodes, while it holds the old one. Pure.
import type { Assignments } from '../../account/assignments.js';
import { releaseMemory } from '../../account/booked-memory.js';
import type { ContainerAssignment, PodAssignment } from '../../account/pod-assignment.js';
import { replacePod } from '../../account/pod-changes.js';
import { memoryOf, nodesOf, presentCpus } from '../../account/pod-holdings.js';
import { NodeSet } from '../../machine/cpu-set.js';
import { HintFamily } from '../../machine/hints.js';
import type { Topology } from '../../machine/topology.js';
import { cpusOfSameKinds } from '../cpus/core-kinds.js';
import { decideWhether } from '../decision.js';
import type { DeviceResources } from '../devices/device-resources.js';
import type { HintProvider } from '../hints/hint-provider.js';
import type { Question } from '../question.js';
import type { MovableGrant, MoveTarget } from './movable-grant.js';
import type { NodesToTry } from './nodes-to-try.js';

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
 * Moves a grant to exactly these NUMA nodes. The grant still holds its old place, so the new place
 * must be free beside it. Undefined if there is no room, or the grant would be worse off.
 */
export function moveOf(
  question: Question,
  state: Assignments,
  grant: MovableGrant,
  { to, keepsMemory }: MoveTarget,
): StateAfterMove | undefined {
  const { topology, present, hugepages } = question;
  const { pod, request, requestOfCpus, memory } = grant;
  const decision = decideWhether({
    topology,
    present,
    state,
    request: keepsMemory ? requestOfCpus : request,
    resources: NO_DEVICES,
    providers: [providerNear(pod, topology, to, keepsMemory)],
    owner: pod.owner,
    uid: pod.uid,
    trialUid: pod.uid,
    now: pod.admittedAt,
    dryRun: true,
    hugepages,
    // It stays on its kinds of cores.
    within: to.cpus.intersection(cpusOfSameKinds(topology, grant.cpus)),
  });
  if (!decision) return undefined;
  const after = podAfter(pod, decision.pod, keepsMemory);
  const nodes = topology.nodesOf(presentCpus(after)).union(nodesOf(memoryOf(after)));
  if (!nodes.equals(to.nodes) || isWorse(pod, after)) return undefined;
  const booked = keepsMemory ? state.memory : memory.reduce(releaseMemory, decision.next().memory);
  return { move: { uid: pod.uid, before: pod, after }, state: replacePod(state, after, booked) };
}

// Aligned containers must stay aligned, and amounts must not change, even if options have changed
// since the admission.
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
      // The policy `none` has no hints on record.
      hint: pod.policy === 'none' ? before.hint : hint,
      memory: keepsMemory ? before.memory : memory,
    };
  });
  const { booking } = placed;
  const memory = keepsMemory ? pod.booking?.memory : booking?.memory;
  return { ...pod, containers, booking: booking && { ...booking, memory: memory ?? booking.memory } };
}

// A provider that offers only these nodes. Each container is aligned among them, with the memory
// that it keeps.
function providerNear(
  pod: PodAssignment,
  { numaNodes }: Topology,
  { hints }: NodesToTry,
  keepsMemory: boolean,
): HintProvider {
  const near = (container: string | null): HintFamily => {
    if (!keepsMemory) return hints;
    const part = pod.booking ? pod : { ...pod, containers: containersFor(pod, container) };
    const must = nodesOf(memoryOf(part));
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
