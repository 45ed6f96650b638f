// A group of the cpuset hierarchy of cgroup v1. See cpusets(7).
import { readdirSync } from 'node:fs';
import { CpuSet } from '../../machine/cpu-set.js';
import { cgroupRefusal, unlessEnded } from '../files/cgroup-error.js';
import type { Changes } from '../files/changes.js';
import { CommonGroup } from './common-group.js';
import type { Partition } from './cpuset-group.js';

export class CpusetGroupV1 extends CommonGroup {
  protected readonly threadsFile = 'tasks';

  protected at(path: string): CpusetGroupV1 {
    return new CpusetGroupV1(this.tree, path);
  }

  protected effectiveFile(name: 'cpus' | 'mems'): string {
    return `cpuset.effective_${name}`;
  }

  protected prepareParent(): void {}

  protected writeMigration(changes: Changes, migrates: boolean): void {
    const [value, former] = migrates ? ['1', '0'] : ['0', '1'];
    if (this.text('cpuset.memory_migrate') === value) return;
    const doing = `make memory ${migrates ? 'migrate' : 'stay'} with the processes of ${this.path}`;
    changes.write(`${this.path}/cpuset.memory_migrate`, value, former, 'set-migration', doing);
  }

  // Quotas are in another hierarchy, where numalign makes no cgroups.
  protected liftQuota(): void {}

  stats(): null {
    return null;
  }

  // The write itself fails if a neighbour is exclusive.
  protected checkNeighbours(): void {}

  protected checkLeaf(): void {}

  protected renewPartition(): void {}

  partitions(): CommonGroup[] {
    return [];
  }

  attachThread(tid: number): void {
    this.writeNumber(this.path, 'tasks', tid, 'attach-thread', `move thread ${tid} into ${this.path}`);
  }

  setPartition(kind: string): never {
    throw this.whyNoPartition(kind);
  }

  whyNoPartition(kind: string): Error {
    const valid = 'cgroup v2';
    return cgroupRefusal(
      'version',
      `${this.path} cannot become a partition (${kind}): cgroup v1 has none; valid is ${valid}`,
      { path: this.path, value: kind, valid },
    );
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
    if (all.every((tid) => inside.has(tid))) {
      unlessEnded(() => this.moveProcess(pid, to, doing));
      return;
    }
    for (const tid of all.filter((tid) => inside.has(tid)))
      unlessEnded(() => this.writeNumber(to, 'tasks', tid, 'attach-thread', doing));
  }
}

function threadsOf(pid: number): number[] {
  try {
    return readdirSync(`/proc/${pid}/task`).map(Number);
  } catch {
    return [];
  }
}
