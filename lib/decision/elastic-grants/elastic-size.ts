// Elastic size: what a grant is with another number of CPUs, where its policy allows that. Pure.
import { memoryBlocks } from '../../account/booked-memory.js';
import { kubeletCpus } from '../../account/kubelet-record.js';
import type { ContainerAssignment, PodAssignment } from '../../account/pod-assignment.js';
import { DEFAULT_PLACEMENT, recordedPlacement } from '../../input/placement.js';
import type { CpuSet } from '../../machine/cpu-set.js';
import { oneThreadACore, siblings } from '../cpus/cpu-choices.js';
import { takeCpus } from '../cpus/cpu-manager.js';
import { decideWhether } from '../decision.js';
import { type Resized, type ResizeGround, resizedPod, resizeQuestion } from '../resized-pod.js';
import type { ElasticPod } from './elastic-view.js';

/**
 * The grant with so many CPUs; undefined: its policy refuses them, or they are not to be had. `near`:
 * what it is to give up, of these only.
 */
export function elasticSize(
  ground: ResizeGround,
  pod: ElasticPod,
  cpu: number,
  near?: CpuSet,
): Resized | undefined {
  const before = near ? withKept(ground, pod, cpu, near) : pod;
  const question = before && resizeQuestion(ground, before, { cpu }, DEFAULT_PLACEMENT);
  const decision = question && decideWhether(question);
  if (!decision) return undefined;
  const resized = resizedPod(question, decision);
  return isSameMemory(resized.pod, pod) ? resized : undefined;
}

const isSameMemory = (a: PodAssignment, b: PodAssignment) =>
  JSON.stringify(memoryBlocks([a])) === JSON.stringify(memoryBlocks([b]));

// What it keeps as if that were announced: then it is settled.
function withKept(
  { topology, state }: ResizeGround,
  pod: ElasticPod,
  cpu: number,
  near: CpuSet,
): ElasticPod | undefined {
  const { cpus, held } = pod.containers[0]!;
  const placement = recordedPlacement(pod, DEFAULT_PLACEMENT);
  const machine = placement.holdSiblings ? oneThreadACore(topology) : topology;
  const from = cpus.intersection(near).difference(kubeletCpus(state.kubelet));
  if (from.size < cpus.size - cpu) return undefined;
  const kept = cpus.difference(takeCpus(machine, placement, from, cpus.size - cpu));
  const heldStill = placement.holdSiblings ? siblings(topology, kept).intersection(held) : held;
  const [{ name }] = pod.containers as [ContainerAssignment];
  return { ...pod, upcoming: { container: name, cpus: kept, held: heldStill, by: pod.owner.uuid } };
}
