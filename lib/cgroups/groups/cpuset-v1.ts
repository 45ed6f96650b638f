// A group of the cpuset hierarchy of cgroup v1. See cpusets(7).

import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { unlessThrown } from '../../base/errors.js';
import { CpuSet } from '../../machine/cpu-set.js';
import { cgroupRefusal, unlessEnded } from '../files/cgroup-error.js';
import type { Changes } from '../files/changes.js';
import { CpusetGroup } from './cpuset-group.js';
import type { Partition } from './cpuset-tree.js';

export class CpusetGroupV1 extends CpusetGroup {
  protected readonly threadsFile = 'tasks';

  protected at(path: string): CpusetGroupV1 {
    return new CpusetGroupV1(this.tree, path);
  }

  protected effectiveFile(name: 'cpus' | 'mems'): string {
    return `cpuset.effective_${name}`;
  }

  protected override writeMigration(changes: Changes, migrates: boolean): void {
    const [value, former] = migrates ? ['1', '0'] : ['0', '1'];
    if (this.text('cpuset.memory_migrate') === value) return;
    const doing = `make memory ${migrates ? 'migrate' : 'stay'} with the processes of ${this.path}`;
    const path = join(this.path, 'cpuset.memory_migrate');
    changes.write({ action: 'set-migration', doing, path, value }, former);
  }

  attachThread(tid: number): void {
    this.#moveThread(tid, this.path, `move thread ${tid} into ${this.path}`);
  }

  #moveThread(tid: number, folder: string, doing: string): void {
    this.writeNumber(folder, 'tasks', { action: 'attach-thread', doing, value: tid });
  }

  setPartition(kind: string): never {
    throw this.whyNoPartition(kind);
  }

  whyNoPartition(kind: string): Error {
    return cgroupRefusal('version', `${this.path} cannot become a partition (${kind}): cgroup v1 has none`, {
      path: this.path,
      value: kind,
      valid: 'cgroup v2',
    });
  }

  partition(): Partition {
    const [cpus, effective] = this.exists()
      ? [this.cpus(), this.effectiveCpus()]
      : [CpuSet.EMPTY, CpuSet.EMPTY];
    return { kind: 'none', valid: false, text: '', cpus, effective };
  }

  // Threads of a process can be in several cgroups. Those in other cgroups stay there.
  protected moveOut(pid: number, to: string): void {
    const inside = new Set(this.threads());
    const all = threadsOf(pid);
    const doing = `move process ${pid} out of ${this.path}`;
    const leaving = all.filter((tid) => inside.has(tid));
    if (leaving.length === all.length) unlessEnded(() => this.moveProcess(pid, to, doing));
    else for (const tid of leaving) unlessEnded(() => this.#moveThread(tid, to, doing));
  }
}

function threadsOf(pid: number): number[] {
  return unlessThrown(() => readdirSync(`/proc/${pid}/task`).map(Number), []);
}
