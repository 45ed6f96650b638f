// A group of a cgroup v2 hierarchy with the cpuset controller. See
// Documentation/admin-guide/cgroup-v2.rst, "Cpuset".
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { native } from '../../base/native.js';
import { moveProcess } from '../../machine/affinity.js';
import { CpuSet } from '../../machine/cpu-set.js';
import { attempt, cgroupRefusal, unlessEnded } from '../files/cgroup-error.js';
import { childNames, readIfThere } from '../files/cgroup-files.js';
import type { Changes } from '../files/changes.js';
import { parseCpuStat } from '../files/cpu-stat.js';
import { isAtOrBelow } from '../files/mounts.js';
import { CommonGroup } from './common-group.js';
import { isRealRoot, whyNotEnabled, withoutCpuset } from './cpuset-controller.js';
import type { Partition, PartitionKind, Throttling } from './cpuset-group.js';
import { CPUS } from './group-files.js';

const PARTITION = 'cpuset.cpus.partition';
const EXCLUSIVE = 'cpuset.cpus.exclusive';
const KINDS: readonly string[] = ['member', 'root', 'isolated'] satisfies PartitionKind[];

export class CpusetGroupV2 extends CommonGroup {
  protected readonly threadsFile = 'cgroup.threads';

  protected at(path: string): CpusetGroupV2 {
    return new CpusetGroupV2(this.tree, path);
  }

  protected effectiveFile(name: 'cpus' | 'mems'): string {
    return `cpuset.${name}.effective`;
  }

  protected prepareParent(changes: Changes): void {
    if (existsSync(join(this.path, 'cpuset.cpus'))) return;
    for (const folder of withoutCpuset(this.tree, this.path)) {
      const refusal = whyNotEnabled(this.tree, folder);
      if (refusal) throw refusal;
      const path = join(folder, 'cgroup.subtree_control');
      changes.write(
        path,
        '+cpuset',
        '-cpuset',
        'enable-controller',
        `enable the cpuset controller below ${folder}`,
      );
    }
  }

  // Memory always migrates since Linux 5.15.
  protected writeMigration(): void {}

  protected liftQuota(changes: Changes): void {
    const former = this.textIfThere('cpu.max');
    if (former === undefined || former.startsWith('max')) return;
    changes.write(
      join(this.path, 'cpu.max'),
      'max',
      former,
      'set-quota',
      `lift the CPU quota of ${this.path}`,
    );
  }

  // An overlap silently makes the existing partition invalid, and it stays so after the overlap is
  // gone.
  protected checkNeighbours(cpus: CpuSet, mustBeAlone = this.partition().valid): void {
    for (const neighbour of this.#neighbours()) {
      const overlap = neighbour.cpus().intersection(cpus);
      if (overlap.isEmpty || !(mustBeAlone || neighbour.partition().valid)) continue;
      const valid = `CPUs other than ${overlap}`;
      const [reason, why] = neighbour.partition().valid
        ? (['foreign-partition', `they are in the partition ${neighbour.path}`] as const)
        : ([
            'partition-invalid',
            `${neighbour.path} has them too, and a partition must have its CPUs alone`,
          ] as const);
      throw cgroupRefusal(reason, `${this.path} cannot have CPUs ${overlap}: ${why}; valid is ${valid}`, {
        path: neighbour.path,
        value: cpus,
        valid,
      });
    }
  }

  // An empty cgroup that enables controllers would take a process and become a root of threads.
  // Cgroups below it could then hold no process.
  protected checkLeaf(folder: string): void {
    if (isRealRoot(folder) || !readIfThere(join(folder, 'cgroup.subtree_control'))?.trim()) return;
    const valid = 'a cgroup with none below it';
    throw cgroupRefusal(
      'internal-processes',
      `${folder} cannot hold processes: it enables controllers for cgroups below it; valid is ${valid}`,
      { path: folder, value: folder, valid },
    );
  }

  protected renewPartition(kind: PartitionKind): void {
    const path = join(this.path, PARTITION);
    for (const step of ['member', kind]) {
      attempt('set-partition', `renew the partition ${this.path}`, path, step, () =>
        this.tree.files.write(path, step),
      );
    }
  }

  partitions(): CpusetGroupV2[] {
    if (!this.exists()) return [];
    const partitions = this.children().flatMap((group) => group.partitions() as CpusetGroupV2[]);
    return isValid(this.textIfThere(PARTITION)) ? [this, ...partitions] : partitions;
  }

  attachThread(tid: number): never {
    const valid = 'a whole process, or cgroup v1';
    throw cgroupRefusal(
      'version',
      `thread ${tid} cannot move into ${this.path} alone: in cgroup v2 a process is in one cgroup with all its threads, except in threaded ` +
        `subtrees, which numalign does not make; valid is ${valid}`,
      { path: this.path, value: tid, valid },
    );
  }

  partition(): Partition {
    const text = this.textIfThere(PARTITION);
    if (text === undefined) {
      return { kind: 'none', valid: false, text: '', cpus: CpuSet.EMPTY, effective: CpuSet.EMPTY };
    }
    const [kind] = text.split(' ');
    return {
      kind: kind === 'root' || kind === 'isolated' ? kind : 'member',
      valid: isValid(text),
      text,
      cpus: this.cpus(),
      effective: this.effectiveCpus(),
    };
  }

  setPartition(kind: PartitionKind, cpus: CpuSet): void {
    if (kind === 'member' && cpus.isEmpty && !this.exists()) return;
    this.checkRoot();
    this.#checkPartition(kind, cpus);
    const nested = this.partitions().filter(({ path }) => path !== this.path);
    if (kind === 'member' && nested.length > 0) {
      throw this.#refuse(
        'nested-partition',
        kind,
        `${nested[0]!.path} below it is a partition`,
        'to end that partition first',
      );
    }
    this.configure(
      kind === 'member' ? nested : this.partitions(),
      (changes) => {
        this.prepare(changes);
        const now = this.partition();
        const exclusive = this.textIfThere(EXCLUSIVE);
        // An invalid partition would stay invalid with any CPUs.
        if (now.kind !== 'member' && (kind === 'member' || !now.valid || exclusive))
          this.#write(changes, 'member');
        if (exclusive) this.#clearExclusive(changes, exclusive);
        if (kind !== 'member') this.checkNeighbours(cpus, true);
        if (cpus.isEmpty) this.clearCpus(changes);
        else this.place(changes, CPUS, cpus);
        if (kind === 'member') return;
        if (this.partition().kind !== kind) this.#write(changes, kind);
        const { valid, text } = this.partition();
        if (!valid) throw this.#refuse('partition-invalid', kind, `it reads back "${text}"`, adviceOn(text));
      },
      () => kind !== 'member' && this.checkCpus(cpus),
    );
  }

  // After a removal, the kernel returns the CPUs to the group above only some time later.
  protected override endPartition(): void {
    const { kind } = this.partition();
    if (kind === 'member' || kind === 'none' || childNames(this.path).length > 0 || this.isPopulated())
      return;
    const path = join(this.path, PARTITION);
    attempt('set-partition', `end the partition ${this.path}`, path, 'member', () =>
      this.tree.files.write(path, 'member'),
    );
  }

  stats(): Throttling | null {
    return throttling(readIfThere(join(this.path, 'cpu.stat')));
  }

  protected moveOut(pid: number, to: string): void {
    unlessEnded(() => this.moveProcess(pid, to, `move process ${pid} from ${this.path} to ${to}`));
    if (isRealRoot(to)) keepOffPartitions(pid, this.at(to).effectiveCpus());
  }

  #checkPartition(kind: PartitionKind, cpus: CpuSet): void {
    if (!KINDS.includes(kind))
      throw this.#refuse('version', kind, 'this kind does not exist', KINDS.join(', '));
    if (kind === 'member') return;
    if (cpus.isEmpty) throw this.#refuse('no-cpus', kind, 'it would have no CPUs', 'at least one CPU');
    const refusal = this.whyNoPartition(kind);
    if (refusal) throw refusal;
  }

  whyNoPartition(kind: PartitionKind): Error | undefined {
    const parent = this.at(dirname(this.path));
    if (isRealRoot(parent.path) || parent.partition().valid) return undefined;
    if (isAtOrBelow(parent.path, this.tree.rootPath)) {
      return this.#refuse(
        'partition-invalid',
        kind,
        `${parent.path} above it is not a partition`,
        'to make that a partition first',
      );
    }
    return this.#refuse(
      'not-delegated',
      kind,
      `${parent.path} above it is not a partition ("${parent.partition().text}"), and only the owner of the cgroup above that can make it one`,
      'a cgroup root directly below that of the machine, as root, or below a partition',
    );
  }

  #refuse(reason: Parameters<typeof cgroupRefusal>[0], kind: string, why: string, valid: string): Error {
    return cgroupRefusal(reason, `${this.path} cannot become ${kind}: ${why}; valid is ${valid}`, {
      path: this.path,
      value: kind,
      text: this.partition().text,
      valid,
    });
  }

  // Since Linux 6.7 a partition has these CPUs if there are any, not those of cpuset.cpus.
  #clearExclusive(changes: Changes, former: string): void {
    const doing = `clear the exclusive CPUs of ${this.path}`;
    changes.write(join(this.path, EXCLUSIVE), '', former, 'set-cpus', doing);
  }

  #write(changes: Changes, kind: PartitionKind): void {
    const doing =
      kind === 'member' ? `end the partition ${this.path}` : `make ${this.path} a partition (${kind})`;
    changes.write(join(this.path, PARTITION), kind, this.partition().kind, 'set-partition', doing);
  }

  // The groups beside this one with their own CPUs.
  #neighbours(): CpusetGroupV2[] {
    return (this.at(dirname(this.path)).children() as CpusetGroupV2[]).filter(
      (group) => group.path !== this.path && existsSync(join(group.path, PARTITION)),
    );
  }
}

// Linux 6.1 gives a thread that moves to the root of the hierarchy all CPUs, even those of
// partitions, and lets it run there.
function keepOffPartitions(pid: number, allowed: CpuSet): void {
  const outside = new CpuSet(native.onlineCpus()).difference(allowed);
  if (!outside.isEmpty) moveProcess(pid, outside, allowed);
}

// A valid partition has no text after its kind.
function isValid(text: string | undefined): boolean {
  return text === 'root' || text === 'isolated';
}

// Advice for the kernel's reason.
function adviceOn(text: string): string {
  if (text.includes('exclusive')) return 'CPUs that no cgroup beside it has';
  // Linux 6.1 also counts processes that are below the partition, not in it.
  if (text.includes('distribute')) {
    return 'fewer CPUs: one must stay for the processes that the cgroup above counts as its own';
  }
  return 'CPUs that the cgroup above has and may give away';
}

/** The throttling in a cpu.stat; null if it has none. */
export function throttling(text: string | undefined): Throttling | null {
  const found = parseCpuStat(text ?? '');
  return found
    ? { nrThrottled: found.nrThrottled, throttledUs: Math.round((found.throttledNs ?? 0) / 1000) }
    : null;
}
