// Adopt: records what a pod already has, in one transaction.

import { findPod } from '../account/assignments.js';
import { bookedOn, bookHeldMemory, memoryBlocks } from '../account/booked-memory.js';
import { cpusNow } from '../account/cpus-now.js';
import { BY_CGROUPS, type EnforcementRequest, isAtLeast, weaker } from '../account/levels.js';
import type { Admission } from '../admission/admit.js';
import type { Host } from '../admission/host.js';
import { transact } from '../admission/transact.js';
import { enforcementWarnings } from '../admission/warnings.js';
import { NumalignError } from '../base/errors.js';
import { native } from '../base/native.js';
import { isoTime } from '../base/text/iso-time.js';
import { totalsOf } from '../decision/memory/memory-tables.js';
import { adoptedPod, holdingText, isSameHolding, overlaps } from './adopted-pod.js';
import { withAdopted } from './adopted-state.js';
import type { AdoptionRequest } from './adoption-request.js';

/**
 * Locks, reloads, clears the shared members and commits. A pod that is on record with the same
 * holdings stays as it is.
 * @throws ERR_ADOPTION, ERR_INVALID_OPTION for a path that is not a cgroup or an empty cgroup, and
 *   what the ledger throws
 */
export function adopt(host: Host, request: AdoptionRequest, signal?: AbortSignal): Promise<Admission> {
  const { topology, ledger, providers, resources } = host;
  const uid = request.pod.uid ?? native.randomUuid();
  return transact(host, signal, async (state, commit, stateOnRecord) => {
    const existing = findPod(state, uid);
    const owner = existing?.owner ?? ledger.owners.recordFor(request.owner);
    const pod = adoptedPod(request, { uid, owner, now: isoTime(), resources });
    if (existing) {
      if (!isSameHolding(existing, pod))
        throw adoptionError([`grant ${uid} is on record with something else: ${holdingText(existing)}`]);
      providers.keep(existing);
      return { pod: existing, warnings: [], alreadyAdmitted: true };
    }
    if (commit.refusal) throw commit.refusal;
    const totalOn = totalsOf(topology);
    const allocatableOn = (node: number, type: string) =>
      totalOn(node, type) - bookedOn(state.settings.reservedMemory, node, type);
    const booked = memoryBlocks([pod]).reduce(
      (all, block) => bookHeldMemory(all, block, allocatableOn),
      state.memory,
    );
    const adopted = withAdopted(state, [pod], booked, {
      topology,
      present: cpusNow(topology, stateOnRecord.pods),
    });
    const conflicts = [...overlaps(pod), ...adopted.conflicts];
    if (conflicts.length > 0) throw adoptionError(conflicts);
    const { next, shortfalls } = await commit(adopted.next, providers.isEmpty, {
      request: aimOfAdoption(host, request.enforcement),
    });
    const placed = findPod(next, uid)!;
    providers.keep(placed);
    return { pod: placed, warnings: enforcementWarnings(placed, shortfalls), alreadyAdmitted: false };
  });
}

/**
 * The enforcement for what a pod already has. The pod runs in its own cgroups, from which a
 * partition would take the CPUs, so there is a partition only if `request` has it.
 */
export function aimOfAdoption(
  { enforcement: usual }: Pick<Host, 'enforcement'>,
  request: Partial<EnforcementRequest> = {},
): EnforcementRequest {
  const { require = usual.require } = request;
  const most = weaker(usual.enforcement, BY_CGROUPS);
  const enforcement = isAtLeast(require, most) ? require : most;
  return { ...usual, enforcement, ...request, isNamed: request.enforcement !== undefined };
}

const adoptionError = (conflicts: readonly string[]) =>
  new NumalignError('ERR_ADOPTION', `nothing is adopted: ${conflicts.join('; ')}`, {
    value: conflicts,
    valid: 'a pod whose CPUs, memory and devices no other pod has, and that leaves CPUs for the shared pool',
  });
