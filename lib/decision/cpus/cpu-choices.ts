// The numbers of exclusive CPUs that pods need, and the CPUs to choose them from. Pure.

import { oncePer } from '../../base/collections/once-per.js';
import type { CoreClaims } from '../../base/native-hints.js';
import type { Placement } from '../../input/placement.js';
import { podTotal, requestOf } from '../../input/pods/pod-request.js';
import type { PodRequest } from '../../input/pods/pod-resources.js';
import { type ContainerRequest, MILLI } from '../../input/pods/resource-amounts.js';
import { CpuSet } from '../../machine/cpu-set.js';
import type { Topology } from '../../machine/topology.js';
import type { Draft } from '../draft/draft.js';
import { type Claim, isBookedWhole, isExclusive, podAmount } from '../draft/partition.js';

type PodDraft = Pick<Draft, 'pod' | 'placement'>;

/** The number of a container's exclusive CPUs: whole CPUs in a Guaranteed pod, or on request; else 0. */
export function exclusiveCount(pod: PodRequest, container: ContainerRequest, placement: Placement): number {
  const milli = requestOf(container, 'cpu');
  const isChosen = pod.exclusiveContainer === container.name;
  return isExclusive(pod, container) ? wholeCount(pod, milli, placement, isChosen) : 0;
}

// `isChosen`: for a container to which the caller gives exclusive CPUs in a pod of any class.
function wholeCount(
  { qosClass, isMixed }: PodRequest,
  milli: number,
  { cpuPolicy }: Placement,
  isChosen = false,
): number {
  if (cpuPolicy === 'none' || (qosClass !== 'Guaranteed' && !isChosen)) return 0;
  return isMixed || milli % MILLI === 0 ? Math.floor(milli / MILLI) : 0;
}

/** Millicores of the shared pool that the pod uses at one time beside its exclusive CPUs. */
export function mixedMilli(pod: PodRequest, placement: Placement): number {
  if (!pod.isMixed) return 0;
  return podTotal(pod, (container) =>
    exclusiveCount(pod, container, placement) > 0 ? requestOf(container, 'cpu') % MILLI : 0,
  );
}

/** Explains to people why a container gets no exclusive CPUs; null if it gets some. */
export function whyShared(pod: PodRequest, container: ContainerRequest, placement: Placement): string | null {
  const isFractional = isBookedWhole(pod, placement) && podExclusiveCount(pod, placement) === 0;
  if (exclusiveCount(pod, container, placement) > 0 && !isFractional) return null;
  if (placement.cpuPolicy === 'none') return 'the CPU policy is none';
  if (pod.resources && !pod.resources.isManaged)
    return 'the pod has resources as a whole, and the feature gate PodLevelResourceManagers is off';
  if (pod.notGuaranteed !== null && pod.exclusiveContainer !== container.name)
    return `${pod.qosClass}: ${pod.notGuaranteed}`;
  if (isFractional) return `the pod as a whole: ${podAmount(pod, 'cpu')}m is not a whole number of CPUs`;
  if (!isExclusive(pod, container))
    return `container ${container.name}: its requests of cpu and memory are not its limits, and it shares`;
  return `container ${container.name}: ${requestOf(container, 'cpu')}m is not a whole number of CPUs`;
}

/** The number of exclusive CPUs that the pod needs at one time. */
export function podExclusiveCount(pod: PodRequest, placement: Placement): number {
  if (isBookedWhole(pod, placement)) return wholeCount(pod, podAmount(pod, 'cpu'), placement);
  return podTotal(pod, (container) => exclusiveCount(pod, container, placement));
}

/** The same of a container, or of the whole pod (undefined). */
export const cpuCount = ({ pod, placement }: PodDraft, container: ContainerRequest | undefined): number =>
  container ? exclusiveCount(pod, container, placement) : podExclusiveCount(pod, placement);

/** The claims of a pod's containers to exclusive CPUs, in turn. */
export const cpuClaims = ({ pod, placement }: PodDraft): Claim[] =>
  pod.containers.map((container) => ({
    kind: container.kind,
    amount: exclusiveCount(pod, container, placement) || null,
  }));

/** The same as the core reads them. `total`: with the CPUs of a pod that no claim names. */
export function coreClaims(claims: readonly Claim[], total = 0): CoreClaims {
  const kept = claims.reduce((sum, { kind, amount }) => sum + (kind === 'init' ? 0 : (amount ?? 0)), 0);
  const shared: Claim = { kind: 'app', amount: total > kept ? total - kept : null };
  return [...claims, shared].flatMap(({ kind, amount }) =>
    amount === null ? [] : [2 * amount + (kind === 'init' ? 1 : 0)],
  );
}

/** What later claims want of the rest. An init container leaves them all. */
export const claimsAfter = (claims: readonly Claim[], at: number): CoreClaims =>
  claims[at]!.kind === 'init' ? [] : coreClaims(claims.slice(at + 1));

const oneThreadACore = oncePer((topology: Topology) => topology.withoutSmt());

/** The machine to choose on. Grants that hold siblings choose cores, not CPUs. */
export const machineFor = ({ topology, placement }: Pick<Draft, 'topology' | 'placement'>): Topology =>
  placement.holdSiblings ? oneThreadACore(topology) : topology;

/** The CPUs to choose `count` from, and the machine to choose on. */
export function candidates({ topology, placement, free, reusable }: Draft, count: number) {
  const all = free.union(reusable);
  const machine = machineFor({ topology, placement });
  if (placement.holdSiblings) return { machine, from: topology.wholeCores(all).intersection(machine.cpus) };
  const whole = placement.fullPhysicalCpusOnly && count % topology.cpusPerCore === 0;
  // CPUs that the pod already has are whole cores.
  return { machine, from: whole ? topology.wholeCores(all).union(reusable) : all };
}

export function siblings({ cores }: Topology, cpus: CpuSet): CpuSet {
  return cores
    .filter((core) => core.cpus.intersects(cpus))
    .reduce((held, core) => held.union(core.cpus), CpuSet.EMPTY)
    .difference(cpus);
}
