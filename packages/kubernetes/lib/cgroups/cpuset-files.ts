// CpusetFiles: the cpusets of containers, by the paths that their runtime reports. Reads and writes
// many at a time (cpuset(7), cgroups(7)).
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CpuSet, NodeSet } from 'numalign';
import { neededHierarchy } from 'numalign/tools';
import { NodeError } from '../base/errors.js';
import { cgroupPath } from './cgroup-path.js';

const codeOf = (error: unknown) => (error as NodeJS.ErrnoException).code ?? String(error);

/**
 * Checks that a folder is a hierarchy with cpusets, and returns it.
 * @throws ERR_CGROUP if it is not
 */
export function checkHierarchy(root: string): string {
  // The root of version 2 has no cpuset.cpus.
  const isHierarchy = ['cpuset.cpus', 'cpuset.cpus.effective'].some((file) => existsSync(join(root, file)));
  if (isHierarchy) return root;
  throw new NodeError('ERR_CGROUP', `${root} is not a cgroup hierarchy with cpusets`, {
    value: root,
    valid: "the folder where the machine's cgroups with cpusets are mounted",
  });
}

export class CpusetFiles {
  readonly #root: string;
  readonly #isUnified: boolean;

  /**
   * `root`: the folder of the machine's cpuset hierarchy; default: where it is mounted.
   * @throws ERR_CGROUP if there is none
   */
  constructor(root = neededHierarchy('cpuset').mount.point) {
    this.#root = root;
    this.#isUnified = existsSync(join(root, 'cgroup.controllers'));
  }

  /** The folder of the hierarchy. */
  get root(): string {
    return this.#root;
  }

  get version(): 1 | 2 {
    return this.#isUnified ? 2 : 1;
  }

  /**
   * The folder of a container's cgroup, whether or not it exists. `cgroupsPath`: in the form of its
   * runtime.
   */
  folder(cgroupsPath: string): string {
    return join(this.#root, cgroupPath(cgroupsPath));
  }

  /** Whether the cgroup exists, and has no process in it or below it. */
  isEmpty(cgroupsPath: string): boolean {
    return isEmptyFolder(this.folder(cgroupsPath));
  }

  /** Whether no process is in the cgroup or below it, as far as can be known. */
  isLeft(cgroupsPath: string): boolean {
    return cgroupsPath === '' || !existsSync(this.folder(cgroupsPath)) || this.isEmpty(cgroupsPath);
  }

  /** The CPUs of a cgroup; undefined if it does not exist or cannot be read. */
  read(cgroupsPath: string): CpuSet | undefined {
    const folder = this.folder(cgroupsPath);
    // In a unified hierarchy an empty file means the CPUs of the parent.
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

  /**
   * The memory nodes that are set for a cgroup; undefined if they cannot be read. In a unified
   * hierarchy none means those of the parent.
   */
  readMems(cgroupsPath: string): NodeSet | undefined {
    try {
      return NodeSet.parse(readFileSync(join(this.folder(cgroupsPath), 'cpuset.mems'), 'utf8').trim());
    } catch {
      return undefined;
    }
  }

  /** Writes and reads back. Returns the kernel's error, such as ENOENT; undefined on success. */
  write(cgroupsPath: string, cpus: CpuSet): string | undefined {
    const error = this.#write(cgroupsPath, 'cpuset.cpus', cpus);
    if (error !== undefined) return error;
    const found = this.read(cgroupsPath);
    return found?.equals(cpus) ? undefined : `the kernel has CPUs ${found ?? 'unknown'}`;
  }

  /** Writes the memory nodes. Returns the kernel's error; undefined on success. */
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
    const folders = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isDirectory());
    return folders.every(({ name }) => isEmptyFolder(join(folder, name)));
  } catch {
    // The cgroup is being removed, or is a threaded cgroup, which does not list its processes.
    return false;
  }
}
