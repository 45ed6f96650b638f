// Elastic size: a grant with another number of CPUs, if its policy allows that. Pure.
import { memoryBlocks } from '../../account/booked-memory.js';
import { kubeletCpus } from '../../account/kubelet-record.js';
import type { ContainerAssignment, PodAssignment } from '../../account/pod-assignment.js';
import { Refusal } from '../../base/refusal.js';
import { DEFAULT_PLACEMENT, recordedPlacement } from '../../input/placement.js';
import type { CpuSet } from '../../machine/cpu-set.js';
import { siblings } from '../cpus/cpu-choices.js';
import { takeOf } from '../cpus/cpu-manager.js';
import { decideWhether } from '../decision.js';
import { type Resized, type ResizeFacts, resizedPod, resizeQuestion } from '../resized-pod.js';
import type { ElasticPod } from './elastic-view.js';

/**
 * The grant resized to `cpu` CPUs; undefined if its policy refuses that, or the CPUs are not free.
 * `near`: the only CPUs that it may give up.
 */
export function elasticSize(
  ground: ResizeFacts,
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

// The grant with the CPUs that it keeps as announced ones: a decision does not choose these again.
function withKept(
  { topology, state }: ResizeFacts,
  pod: ElasticPod,
  cpu: number,
  near: CpuSet,
): ElasticPod | undefined {
  const { cpus, held } = pod.containers[0]!;
  const placement = recordedPlacement(pod, DEFAULT_PLACEMENT);
  const from = cpus.intersection(near).difference(kubeletCpus(state.kubelet));
  if (from.size < cpus.size - cpu) return undefined;
  let kept: CpuSet;
  try {
    kept = cpus.difference(takeOf({ topology, placement }, from, cpus.size - cpu));
  } catch (error) {
    // Whole cores do not add up to that.
    if (error instanceof Refusal) return undefined;
    throw error;
  }
  const heldStill = placement.holdSiblings ? siblings(topology, kept).intersection(held) : held;
  const [{ name }] = pod.containers as [ContainerAssignment];
  return { ...pod, upcoming: { container: name, cpus: kept, held: heldStill, by: pod.owner.uuid } };
}
