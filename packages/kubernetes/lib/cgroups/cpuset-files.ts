// CpusetFiles: the cpusets of containers by the paths that their runtime tells, read and written many
// at a time (cpuset(7), cgroups(7)).
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CpuSet, type NodeSet } from 'numalign';
import { NodeError } from '../base/errors.js';
import { cgroupPath } from './cgroup-path.js';
import { findHierarchy } from './hierarchies.js';

const codeOf = (error: unknown) => (error as NodeJS.ErrnoException).code ?? String(error);

function mountedHierarchy(): string {
  const hierarchy = findHierarchy('cpuset');
  if (hierarchy) return hierarchy.point;
  throw new NodeError('ERR_CGROUP', 'no hierarchy of cgroups with cpusets is mounted here', {
    value: 'cpuset',
    valid: 'a machine whose cgroups have the cpuset controller, with them mounted here',
  });
}

export class CpusetFiles {
  readonly #root: string;
  readonly #isUnified: boolean;

  /**
   * `root`: the folder of the machine's hierarchy with cpusets; default: where it is mounted.
   * @throws ERR_CGROUP where none is
   */
  constructor(root = mountedHierarchy()) {
    this.#root = root;
    this.#isUnified = existsSync(join(root, 'cgroup.controllers'));
  }

  /** The folder of a container's cgroup, there or not. `cgroupsPath`: as its runtime has it. */
  folder(cgroupsPath: string): string {
    return join(this.#root, cgroupPath(cgroupsPath));
  }

  /** Whether the cgroup is there, and no process is in it or below it. */
  isEmpty(cgroupsPath: string): boolean {
    return isEmptyFolder(this.folder(cgroupsPath));
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
    const error = this.#write(cgroupsPath, 'cpuset.cpus', cpus);
    if (error !== undefined) return error;
    const found = this.read(cgroupsPath);
    return found?.equals(cpus) ? undefined : `the kernel has CPUs ${found ?? 'unknown'}`;
  }

  /** Writes the memory nodes. Returns the kernel's error; undefined: it is done. */
  writeMems(cgroupsPath: string, mems: NodeSet): string | undefined {
    return this.#write(cgroupsPath, 'cpuset.mems', mems);
  }

  #write(cgroupsPath: string, file: string, set: CpuSet | NodeSet): string | undefined {
    try {
      writeFileSync(join(this.folder(cgroupsPath), file), set.toString());
      return undefined;
    } catch (error) {
      return codeOf(error);
    }
  }
}

function isEmptyFolder(folder: string): boolean {
  try {
    if (readFileSync(join(folder, 'cgroup.procs'), 'utf8') !== '') return false;
    const below = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isDirectory());
    return below.every(({ name }) => isEmptyFolder(join(folder, name)));
  } catch {
    // It goes while it is looked at, or a threaded cgroup does not tell its processes.
    return false;
  }
}
