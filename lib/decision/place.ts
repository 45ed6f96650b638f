// Place: hints, merge, allocate, for each container or for the whole pod. Pure, but for what custom
// hint providers do.
import type { PodAssignment } from '../account/pod-assignment.js';
import { withLast } from '../base/collections/lists.js';
import type { ContainerRequest } from '../input/resource-amounts.js';
import type { TopologyHint } from '../machine/hints.js';
import { admittedHint, type Requests, requestsFor } from './alignment.js';
import { checkSharedPool, leavesNoPool } from './cpu-limits.js';
import { allocateCpus, cpusTaken } from './cpu-manager.js';
import { allocateDevices } from './devices/device-allocation.js';
import { askToAllocate } from './hints/hint-provider.js';
import { allocateMemory } from './memory/memory-allocation.js';
import { memoryLeft } from './memory/memory-booking.js';
import { draftAfter, type Given, type Progress } from './progress.js';
import { hintRequest } from './question.js';

export function place(progress: Progress): void {
  const { pod, placement } = progress.question.request;
  const forPod = progress.question.resized
    ? resizedHint(progress, progress.question.resized)
    : placement.scope === 'pod'
      ? admittedHint(progress, requestsFor(progress.draft, undefined))
      : undefined;
  // By index: to iterate over a list that is frozen makes an object for each member.
  const { containers } = pod;
  for (let i = 0; i < containers.length; i++) {
    const container = containers[i]!;
    const last = progress.given.at(-1);
    if (last) progress.draft = draftAfter(progress.draft, last);
    progress.container = container;
    const requests = requestsFor(progress.draft, container);
    const hint = forPod ?? admittedHint(progress, requests);
    progress.given = withLast(progress.given, allocate(progress, container, requests, hint));
  }
  progress.container = undefined;
  // What the last container leaves matters for nothing else.
  const { draft } = progress;
  const last = progress.given.at(-1)!;
  if (leavesNoPool(draft, cpusTaken(draft, last.cpus))) checkSharedPool(draftAfter(draft, last));
}

// Only growth can be where it should not.
function resizedHint(progress: Progress, { containers: [now] }: PodAssignment): TopologyHint {
  [progress.container] = progress.question.request.pod.containers;
  const { requests } = progress.container!;
  const isGrowing = Object.entries(requests).some(
    ([resource, amount]) => amount > (now!.request[resource] ?? 0),
  );
  return isGrowing ? admittedHint(progress, requestsFor(progress.draft, progress.container)) : now!.hint;
}

function allocate(
  progress: Progress,
  container: ContainerRequest,
  requests: Requests,
  hint: TopologyHint,
): Given {
  const { providers } = progress.question;
  const { draft } = progress;
  const devices = draft.kept?.devices ?? allocateDevices(draft, container, requests.devices, hint);
  const cpus = allocateCpus(draft, container, hint);
  const blocks = allocateMemory(draft, requests.memory, hint);
  for (const provider of providers) askToAllocate(provider, hintRequest(progress), hint);
  return { container, hint, cpus, devices, memory: memoryLeft(draft, container, blocks) };
}
