// Cpuset: the CPUs and memory nodes of a cgroup, as the kernel has them.
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { CpuSet, NodeSet } from 'numalign';
import { NodeError } from '../base/errors.js';
import { folderOfProcess } from './hierarchies.js';

export interface Cpuset {
  /** The cgroup's folder. */
  readonly folder: string;
  /**
   * What is set for it. With cgroup v2 both may be empty: nothing is set, and it has what the cgroup
   * above has.
   */
  readonly cpus: CpuSet;
  readonly mems: NodeSet;
  /** What its processes may use. */
  readonly effectiveCpus: CpuSet;
  readonly effectiveMems: NodeSet;
}

// Version 2, then version 1.
const EFFECTIVE = {
  cpus: ['cpuset.cpus.effective', 'cpuset.effective_cpus'],
  mems: ['cpuset.mems.effective', 'cpuset.effective_mems'],
};

const read = (folder: string, file: string) => readFileSync(join(folder, file), 'utf8').trim();

function effective(folder: string, kind: keyof typeof EFFECTIVE): string {
  const file = EFFECTIVE[kind].find((name) => existsSync(join(folder, name)));
  return read(folder, file ?? `cpuset.${kind}`);
}

/** With version 2 the controller may end above a cgroup, which then has what that one has. */
function withController(folder: string): string {
  if (existsSync(join(folder, 'cpuset.cpus')) || !existsSync(join(folder, 'cgroup.procs'))) return folder;
  return withController(dirname(folder));
}

/**
 * The cpuset of a cgroup by its folder.
 * @throws ERR_CGROUP where there is none
 */
export function readCpuset(folder: string): Cpuset {
  try {
    const at = withController(folder);
    const given = (kind: 'cpus' | 'mems') => (at === folder ? read(at, `cpuset.${kind}`) : '');
    return {
      folder,
      cpus: CpuSet.parse(given('cpus')),
      mems: NodeSet.parse(given('mems')),
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
 * @throws ERR_CGROUP where it has ended, or its cgroup cannot be seen from here
 */
export const cpusetOfProcess = (pid: number, proc = '/proc') =>
  readCpuset(folderOfProcess(pid, 'cpuset', proc));
