// Lineage: where a process has its mask from, as far as /proc shows it.
import { native } from '../../base/native.js';
import { CpuSet } from '../../machine/cpu-set.js';
import {
  identifyProcess,
  identifySelf,
  type ProcessIdentity,
  startTimeOf,
  statOf,
} from '../../processes/process-identity.js';
import { parentsOf } from './descent.js';

/** Where this process has its mask from. */
export interface Lineage {
  /** This process and its parents that have the same mask. The last had it first. */
  readonly heirs: readonly ProcessIdentity[];
  /** When the last of them started, in milliseconds since 1970. */
  readonly began: number;
  /** Its living parents, which have other masks now. */
  readonly starters: readonly ProcessIdentity[];
  /** True if the process that started it has ended. */
  readonly isOrphan: boolean;
}

/** The lineage of this process with this mask; undefined if it cannot be seen. */
export function lineageOf(mask: CpuSet): Lineage | undefined {
  try {
    const all = [process.pid, ...parentsOf(process.pid)];
    const other = all.findIndex((pid) => pid !== process.pid && !hasMask(pid, mask));
    const [same, parents] = other < 0 ? [all, []] : [all.slice(0, other), all.slice(other)];
    const heirs = [identifySelf(), ...identified(same.slice(1))];
    const first = heirs.at(-1)!;
    const isOrphan = wasReparented(first.pid);
    return { heirs, began: startTimeOf(first), starters: identified(parents), isOrphan };
  } catch {
    // One of them has ended meanwhile.
    return undefined;
  }
}

const hasMask = (pid: number, mask: CpuSet) => new CpuSet(native.affinity(pid)).equals(mask);

const identified = (pids: readonly number[]) => pids.flatMap((pid) => identifyProcess(pid) ?? []);

// setsid(2): a process is in the session of the one that started it, unless it begins a session.
function wasReparented(pid: number): boolean {
  const { parent, session } = statOf(pid);
  return session !== String(pid) && Number(parent) > 0 && statOf(Number(parent)).session !== session;
}
