// Adopt: one transaction that puts on record what somebody has already.
import { randomUUID } from 'node:crypto';
import { findPod } from '../account/assignments.js';
import { bookedOn, bookHeldMemory, memoryBlocks } from '../account/booked-memory.js';
import { cpusNow } from '../account/cpus-now.js';
import { type EnforcementRequest, isAtLeast, weaker } from '../account/levels.js';
import type { Admission } from '../admission/admit.js';
import type { Site } from '../admission/site.js';
import { transact } from '../admission/transact.js';
import { enforcementWarnings } from '../admission/warnings.js';
import { NumalignError } from '../base/errors.js';
import { totalsOf } from '../decision/memory/memory-tables.js';
import { adoptedPod, holdingText, isSameHolding, overlaps } from './adopted-pod.js';
import { withAdopted } from './adopted-state.js';
import type { AdoptionRequest } from './adoption-request.js';

/**
 * Lock, reload, shared members leave, commit. A pod that is on record with the same stays as it is.
 * @throws ERR_ADOPTION, ERR_INVALID_OPTION for a cgroup that is none or is empty, what the ledger
 *   throws
 */
export function adopt(site: Site, request: AdoptionRequest, signal?: AbortSignal): Promise<Admission> {
  const { topology, ledger, providers, resources } = site;
  const uid = request.pod.uid ?? randomUUID();
  return transact(site, signal, async (state, commit, recorded) => {
    const known = findPod(state, uid);
    const owner = known?.owner ?? ledger.owners.recordFor(request.owner);
    const pod = adoptedPod(request, { uid, owner, now: new Date().toISOString(), resources });
    if (known) {
      if (!isSameHolding(known, pod))
        throw refused([`grant ${uid} is on record with something else: ${holdingText(known)}`]);
      providers.keep(known);
      return { pod: known, warnings: [], alreadyAdmitted: true };
    }
    if (commit.refusal) throw commit.refusal;
    const totalOn = totalsOf(topology);
    const allocatableOn = (node: number, type: string) =>
      totalOn(node, type) - bookedOn(state.settings.reservedMemory, node, type);
    const booked = memoryBlocks([pod]).reduce(
      (all, block) => bookHeldMemory(all, block, allocatableOn),
      state.memory,
    );
    const adopted = withAdopted(state, topology, [pod], booked, cpusNow(topology, recorded.pods));
    const conflicts = [...overlaps(pod), ...adopted.conflicts];
    if (conflicts.length > 0) throw refused(conflicts);
    const { next, shortfalls } = await commit(adopted.next, providers.isEmpty, {
      request: aimOfAdoption(site, request.enforcement),
    });
    const placed = findPod(next, uid)!;
    providers.keep(placed);
    return { pod: placed, warnings: enforcementWarnings(placed, shortfalls), alreadyAdmitted: false };
  });
}

/**
 * How strongly others are kept off what a pod has already: it runs in cgroups of its own, from which a
 * partition would take the CPUs. So that is made only where it is `asked` for.
 */
export function aimOfAdoption(
  { enforcement: usual }: Pick<Site, 'enforcement'>,
  asked: Partial<EnforcementRequest> = {},
): EnforcementRequest {
  const { require = usual.require } = asked;
  const most = weaker(usual.enforcement, 'cpuset');
  const enforcement = isAtLeast(require, most) ? require : most;
  return { ...usual, enforcement, ...asked, isNamed: asked.enforcement !== undefined };
}

const refused = (conflicts: readonly string[]) =>
  new NumalignError('ERR_ADOPTION', `nothing is put on record: ${conflicts.join('; ')}`, {
    value: conflicts,
    valid: 'a pod whose CPUs, memory and devices nobody else has, and that leaves CPUs to be shared',
  });
