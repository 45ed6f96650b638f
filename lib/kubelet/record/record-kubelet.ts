// RecordKubelet: records what the kubelet has assigned, in one transaction that moves the shared
// members off its CPUs.
import type { KubeletPod, KubeletRecord } from '../../account/kubelet-record.js';
import type { Host } from '../../admission/host.js';
import { transact } from '../../admission/transact.js';
import { NumalignError } from '../../base/errors.js';
import type { OwnerRegistry } from '../../state/owners/owners.js';

/** The options of {@link Manager.recordKubelet}. */
export interface RecordKubeletOptions {
  /**
   * Aborts the wait for the lock of the state.
   * @default none
   */
  signal?: AbortSignal;
}

/**
 * Locks, reloads, clears the shared members and commits, unless the record is the same. CPUs that
 * members cannot leave are recorded all the same, since the kubelet has already assigned them.
 * @throws ERR_OWNER_ALIVE if another process keeps the record, and what the ledger throws
 */
export function recordKubelet(
  host: Host,
  pods: readonly KubeletPod[] | null,
  signal: AbortSignal | undefined,
): Promise<KubeletRecord | null> {
  const { ledger, enforcement } = host;
  return transact(host, signal, async (state, commit) => {
    if (commit.refusal) throw commit.refusal;
    checkKeeper(state.kubelet, ledger.owners);
    const kubelet = pods && recordOf(state.kubelet, pods, ledger.owners);
    if (kubelet === state.kubelet) return kubelet;
    const request = { ...enforcement, unmovableMembers: 'report' } as const;
    await commit({ ...state, kubelet }, true, { request });
    return kubelet;
  });
}

function checkKeeper(record: KubeletRecord | null, owners: OwnerRegistry): void {
  if (!record || owners.isOwn(record.keeper) || !owners.isProcessAlive(record.keeper.uuid)) return;
  const { pid, command } = record.keeper;
  throw new NumalignError(
    'ERR_OWNER_ALIVE',
    `process ${pid} (${command}) is alive and records what the kubelet assigns`,
    { value: pid, valid: 'the process that keeps the record; or another one after it has ended', pid },
  );
}

function recordOf(
  record: KubeletRecord | null,
  pods: readonly KubeletPod[],
  owners: OwnerRegistry,
): KubeletRecord {
  const isKeeper = record !== null && owners.isOwn(record.keeper);
  const isSame = record !== null && JSON.stringify(record.pods) === JSON.stringify(pods);
  if (isKeeper && isSame) return record;
  const now = new Date().toISOString();
  return Object.freeze({
    pods: isSame ? record.pods : pods,
    keeper: isKeeper ? record.keeper : owners.recordFor('process'),
    since: isKeeper ? record.since : now,
    updatedAt: isSame ? record.updatedAt : now,
    unknown: record?.unknown ?? {},
  });
}
