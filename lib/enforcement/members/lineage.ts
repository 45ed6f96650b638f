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
  /**
   * Its parent, which has another mask now, because something has changed the mask of one of them;
   * `ended` if that has ended.
   */
  readonly starter: ProcessIdentity | 'ended' | undefined;
}

/** The lineage of this process with this mask, as far as it can be seen. */
export function lineageOf(mask: CpuSet): Lineage {
  try {
    const all = [process.pid, ...parentsOf(process.pid)];
    const other = all.findIndex((pid) => pid !== process.pid && !hasMask(pid, mask));
    const same = other < 0 ? all : all.slice(0, other);
    const heirs = [identifySelf(), ...same.slice(1).flatMap((pid) => identifyProcess(pid) ?? [])];
    const first = heirs.at(-1)!;
    const parent = wasReparented(first.pid) ? 'ended' : all[same.length];
    const starter = typeof parent === 'number' ? identifyProcess(parent) : parent;
    return { heirs, began: startTimeOf(first), starter };
  } catch {
    // One of them has ended meanwhile, or /proc hides it.
    const self = identifySelf();
    return { heirs: [self], began: startTimeOf(self), starter: undefined };
  }
}

const hasMask = (pid: number, mask: CpuSet) => new CpuSet(native.affinity(pid)).equals(mask);

// setsid(2), setpgid(2): a process is in the session and in the process group of the one that started
// it, unless it leads one of its own. In containers the first process shares its session with all.
function wasReparented(pid: number): boolean {
  const own = statOf(pid);
  if (Number(own.parent) === 0) return false;
  const parent = statOf(Number(own.parent));
  return (['session', 'group'] as const).some((of) => own[of] !== String(pid) && own[of] !== parent[of]);
}
