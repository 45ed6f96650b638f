// CpusetFiles: the cpusets of containers, as the kernel has them (cpuset(7), cgroups(7)).
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CpuSet } from 'numalign';
import { cgroupPath } from './cgroup-path.js';

/** Where this machine's cgroups are mounted. */
export const CGROUP_ROOT = '/sys/fs/cgroup';

const codeOf = (error: unknown) => (error as NodeJS.ErrnoException).code ?? String(error);

export class CpusetFiles {
  /** The folder of the hierarchy that has cpusets. */
  readonly #root: string;
  readonly #isUnified: boolean;

  /** `root`: of the machine's cgroups, where a container of numalign has them mounted elsewhere. */
  constructor(root = CGROUP_ROOT) {
    this.#isUnified = existsSync(join(root, 'cgroup.controllers'));
    this.#root = this.#isUnified ? root : join(root, 'cpuset');
  }

  /** The folder of a container's cgroup, there or not. `cgroupsPath`: as its runtime has it. */
  folder(cgroupsPath: string): string {
    return join(this.#root, cgroupPath(cgroupsPath));
  }

  /** The CPUs of a cgroup; undefined where it is not there, or cannot be read. */
  read(cgroupsPath: string): CpuSet | undefined {
    const folder = this.folder(cgroupsPath);
    // In a unified hierarchy an empty file stands for what the parent has.
    for (const name of this.#isUnified ? ['cpuset.cpus', 'cpuset.cpus.effective'] : ['cpuset.cpus']) {
      try {
        const cpus = CpuSet.parse(readFileSync(join(folder, name), 'utf8').trim());
        if (!cpus.isEmpty) return cpus;
      } catch {
        return undefined;
      }
    }
    return undefined;
  }

  /** Writes and reads back. Returns the kernel's error, such as ENOENT; undefined: it is done. */
  write(cgroupsPath: string, cpus: CpuSet): string | undefined {
    try {
      writeFileSync(join(this.folder(cgroupsPath), 'cpuset.cpus'), cpus.toString());
    } catch (error) {
      return codeOf(error);
    }
    const found = this.read(cgroupsPath);
    return found?.equals(cpus) ? undefined : `the kernel has CPUs ${found ?? 'unknown'}`;
  }
}
