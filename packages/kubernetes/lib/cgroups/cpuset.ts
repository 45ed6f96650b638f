// Cpuset: the CPUs and memory nodes of a cgroup, read from the kernel.
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { CpuSet, NodeSet } from 'numalign';
import { cgroupFolder } from 'numalign/tools';
import { NodeError } from '../base/errors.js';

export interface Cpuset {
  /** The cgroup's folder. */
  readonly folder: string;
  /**
   * The CPUs that are set for it. With cgroup v2, these and `mems` may be empty: then nothing is
   * set, and it has those of the cgroup above.
   */
  readonly cpus: CpuSet;
  readonly mems: NodeSet;
  /** The CPUs that its processes may use. */
  readonly effectiveCpus: CpuSet;
  readonly effectiveMems: NodeSet;
}

// The names in version 2, then version 1.
const EFFECTIVE = {
  cpus: ['cpuset.cpus.effective', 'cpuset.effective_cpus'],
  mems: ['cpuset.mems.effective', 'cpuset.effective_mems'],
};

const read = (folder: string, file: string) => readFileSync(join(folder, file), 'utf8').trim();

function effective(folder: string, kind: keyof typeof EFFECTIVE): string {
  const file = EFFECTIVE[kind].find((name) => existsSync(join(folder, name)));
  return read(folder, file ?? `cpuset.${kind}`);
}

/** With version 2 the controller may end at a cgroup above, which then decides. */
function withController(folder: string): string {
  if (existsSync(join(folder, 'cpuset.cpus')) || !existsSync(join(folder, 'cgroup.procs'))) return folder;
  return withController(dirname(folder));
}

/**
 * The cpuset of a cgroup, by its folder.
 * @throws ERR_CGROUP if there is none
 */
export function readCpuset(folder: string): Cpuset {
  try {
    const at = withController(folder);
    const setText = (kind: 'cpus' | 'mems') => (at === folder ? read(at, `cpuset.${kind}`) : '');
    return {
      folder,
      cpus: CpuSet.parse(setText('cpus')),
      mems: NodeSet.parse(setText('mems')),
      effectiveCpus: CpuSet.parse(effective(at, 'cpus')),
      effectiveMems: NodeSet.parse(effective(at, 'mems')),
    };
  } catch (cause) {
    throw new NodeError('ERR_CGROUP', `the cpuset of ${folder} cannot be read: ${(cause as Error).message}`, {
      value: folder,
      valid: 'the folder of a cgroup',
      cause,
    });
  }
}

/**
 * The cpuset of a process.
 * @throws ERR_CGROUP if it has ended, or its cgroup cannot be seen from here
 */
export const cpusetOfProcess = (pid: number) => readCpuset(cgroupFolder(pid, 'cpuset'));
