// Puts on record what the kubelet has given out: one transaction, in which the shared members leave
// its CPUs.
import type { KubeletPod, KubeletRecord } from '../../account/kubelet-record.js';
import type { Site } from '../../admission/site.js';
import { transact } from '../../admission/transact.js';
import { NumalignError } from '../../base/errors.js';
import type { OwnerRegistry } from '../../state/owners/owner-registry.js';

/** The options of {@link Manager.recordKubelet}. */
export interface RecordKubeletOptions {
  /**
   * Aborts the wait for the lock of the state.
   * @default none
   */
  signal?: AbortSignal;
}

/**
 * Lock, reload, shared members leave, commit. What is on record already is not committed again. What
 * members cannot leave is no reason to refuse: the kubelet does not ask.
 * @throws ERR_OWNER_ALIVE where another process keeps the record, and what the ledger throws
 */
export function recordKubelet(
  site: Site,
  pods: readonly KubeletPod[] | null,
  signal: AbortSignal | undefined,
): Promise<KubeletRecord | null> {
  const { ledger, enforcement } = site;
  return transact(site, signal, async (state, commit) => {
    if (commit.refusal) throw commit.refusal;
    checkKeeper(state.kubelet, ledger.owners);
    const kubelet = pods && recordOf(state.kubelet, pods, ledger.owners);
    if (kubelet === state.kubelet) return kubelet;
    const request = { ...enforcement, unmovableMembers: 'report' } as const;
    await commit({ ...state, kubelet }, true, { request });
    return kubelet;
  });
}

function checkKeeper(known: KubeletRecord | null, owners: OwnerRegistry): void {
  if (!known || owners.isOwn(known.keeper) || !owners.isProcessAlive(known.keeper.uuid)) return;
  const { pid, command } = known.keeper;
  throw new NumalignError(
    'ERR_OWNER_ALIVE',
    `process ${pid} (${command}) keeps on record what the kubelet has given out, and lives`,
    { value: pid, valid: 'the process that keeps the record; or another one once that has ended', pid },
  );
}

function recordOf(
  known: KubeletRecord | null,
  pods: readonly KubeletPod[],
  owners: OwnerRegistry,
): KubeletRecord {
  const isKeeper = known !== null && owners.isOwn(known.keeper);
  const isSame = known !== null && JSON.stringify(known.pods) === JSON.stringify(pods);
  if (isKeeper && isSame) return known;
  const now = new Date().toISOString();
  return Object.freeze({
    pods: isSame ? known.pods : pods,
    keeper: isKeeper ? known.keeper : owners.recordFor('process'),
    since: isKeeper ? known.since : now,
    updatedAt: isSame ? known.updatedAt : now,
    unknown: known?.unknown ?? {},
  });
}
