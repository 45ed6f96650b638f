// KubeletStatus: the record of what the kubelet has assigned, for status.
import { type KubeletPod, type KubeletRecord, kubeletCpus } from '../../account/kubelet-record.js';
import type { CpuSet } from '../../machine/cpu-set.js';

/** What the kubelet gives out, and which process records it. */
export interface KubeletStatus {
  /** The pods that hold something. */
  readonly pods: readonly KubeletPod[];
  /** All CPUs of these pods. */
  readonly cpus: CpuSet;
  /** The process that keeps the record; if it is not `alive`, the record stays as it was. */
  readonly keeper: {
    readonly pid: number | null;
    readonly command: string | null;
    readonly alive: boolean;
  };
  /** When the keeper began, in ISO 8601. */
  readonly since: string;
  /** When the record changed last, in ISO 8601. */
  readonly updatedAt: string;
}

/** `isAlive`: whether the process with an owner's lock lives. */
export function kubeletStatus(
  record: KubeletRecord | null,
  isAlive: (uuid: string) => boolean,
): KubeletStatus | null {
  if (record === null) return null;
  const { pods, keeper, since, updatedAt } = record;
  const { pid, command, uuid } = keeper;
  return Object.freeze({
    pods,
    cpus: kubeletCpus(record),
    keeper: Object.freeze({ pid, command, alive: isAlive(uuid) }),
    since,
    updatedAt,
  });
}
