// ContainerCgroup: the test's own cgroup with a process in it, like a container's.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { findHierarchy } from 'numalign/tools';

const hierarchy = findHierarchy('cpuset');

/** True if this user can make cpusets here. */
export const canMakeCgroups = process.getuid?.() === 0 && hierarchy !== undefined;

let count = 0;

export class ContainerCgroup {
  readonly id = `${process.pid}x${++count}`.padEnd(64, '0');
  readonly folder: string;
  readonly #process: ChildProcess;

  constructor() {
    const parent = join(hierarchy!.mount.point, `numalign-test-${process.pid}`);
    this.folder = join(parent, this.id);
    for (const folder of [parent, this.folder]) {
      mkdirSync(folder, { recursive: true });
      if (hierarchy!.version === 1) this.#inherit(folder);
      // The controller is there below who has it on.
      else writeFileSync(join(dirname(folder), 'cgroup.subtree_control'), '+cpuset');
    }
    this.#process = spawn('sleep', ['infinity'], { stdio: 'ignore' });
    writeFileSync(join(this.folder, 'cgroup.procs'), `${this.#process.pid}`);
  }

  get pid(): number {
    return this.#process.pid!;
  }

  write(file: 'cpuset.cpus' | 'cpuset.mems', text: string): void {
    writeFileSync(join(this.folder, file), text);
  }

  /** The process ends, as the container does, and its cgroup goes. */
  async end(): Promise<void> {
    if (!existsSync(this.folder)) return;
    const end = once(this.#process, 'exit');
    this.#process.kill('SIGKILL');
    await end;
    // The kernel lets go of a dead process a moment later.
    for (;;) {
      try {
        rmdirSync(this.folder);
        break;
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EBUSY') throw error;
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
    }
    try {
      rmdirSync(dirname(this.folder));
    } catch {
      // There are others in it.
    }
  }

  #inherit(folder: string): void {
    for (const file of ['cpuset.cpus', 'cpuset.mems'])
      writeFileSync(join(folder, file), readFileSync(join(dirname(folder), file)));
  }
}
