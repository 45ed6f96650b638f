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
import { isAtOrBelow } from '../files/mounts.js';
import { isRealRoot, whyNotEnabled, withoutCpuset } from './cpuset-controller.js';
import { CpusetGroup } from './cpuset-group.js';
import type { Partition, PartitionKind } from './cpuset-tree.js';
import { CPUS } from './group-files.js';

const PARTITION = 'cpuset.cpus.partition';
const EXCLUSIVE = 'cpuset.cpus.exclusive';
const KINDS: readonly string[] = ['member', 'root', 'isolated'] satisfies PartitionKind[];

export class CpusetGroupV2 extends CpusetGroup {
  protected readonly threadsFile = 'cgroup.threads';

  protected at(path: string): CpusetGroupV2 {
    return new CpusetGroupV2(this.tree, path);
  }

  protected effectiveFile(name: 'cpus' | 'mems'): string {
    return `cpuset.${name}.effective`;
  }

  protected override prepareParent(changes: Changes): void {
    if (existsSync(join(this.path, 'cpuset.cpus'))) return;
    for (const folder of withoutCpuset(this.tree, this.path)) {
      const refusal = whyNotEnabled(this.tree, folder);
      if (refusal) throw refusal;
      const path = join(folder, 'cgroup.subtree_control');
      const doing = `enable the cpuset controller below ${folder}`;
      changes.write({ action: 'enable-controller', doing, path, value: '+cpuset' }, '-cpuset');
    }
  }

  protected override liftQuota(changes: Changes): void {
    const former = this.textIfThere('cpu.max');
    if (former === undefined || former.startsWith('max')) return;
    const doing = `lift the CPU quota of ${this.path}`;
    changes.write({ action: 'set-quota', doing, path: join(this.path, 'cpu.max'), value: 'max' }, former);
  }

  // An overlap silently makes the existing partition invalid, and it stays so after the overlap is
  // gone.
  protected override checkNeighbours(cpus: CpuSet, mustBeAlone = this.partition().valid): void {
    for (const neighbour of this.#neighbours()) {
      const overlap = neighbour.cpus().intersection(cpus);
      if (overlap.isEmpty || !(mustBeAlone || neighbour.partition().valid)) continue;
      const { path } = neighbour;
      const [reason, why] = neighbour.partition().valid
        ? (['foreign-partition', `they are in the partition ${path}`] as const)
        : (['partition-invalid', `${path} has them too, and a partition must have its CPUs alone`] as const);
      throw cgroupRefusal(reason, `${this.path} cannot have CPUs ${overlap}: ${why}`, {
        path,
        value: cpus,
        valid: `CPUs other than ${overlap}`,
      });
    }
  }

  // An empty cgroup that enables controllers would take a process and become a root of threads.
  // Cgroups below it could then hold no process.
  protected override checkLeaf(folder: string): void {
    if (isRealRoot(folder) || !readIfThere(join(folder, 'cgroup.subtree_control'))?.trim()) return;
    const message = `${folder} cannot hold processes: it enables controllers for cgroups below it`;
    const valid = 'a cgroup with none below it';
    throw cgroupRefusal('internal-processes', message, { path: folder, value: folder, valid });
  }

  protected override renewPartition(kind: PartitionKind): void {
    for (const each of ['member', kind]) this.#become(each, `renew the partition ${this.path}`);
  }

  // Without an undo.
  #become(value: string, doing: string): void {
    const path = join(this.path, PARTITION);
    const step = { action: 'set-partition', doing, path, value } as const;
    attempt(step, () => this.tree.files.write(path, value));
  }

  override partitions(): CpusetGroup[] {
    if (!this.exists()) return [];
    const partitions = this.children().flatMap((group) => group.partitions());
    return isValid(this.textIfThere(PARTITION)) ? [this, ...partitions] : partitions;
  }

  attachThread(tid: number): never {
    throw cgroupRefusal(
      'version',
      `thread ${tid} cannot move into ${this.path} alone: in cgroup v2 a process is in one cgroup with all its threads, except in threaded ` +
        `subtrees, which numalign does not make`,
      { path: this.path, value: tid, valid: 'a whole process, or cgroup v1' },
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
      const why = `${nested[0]!.path} below it is a partition`;
      throw this.#refuse('nested-partition', kind, why, 'to end that partition first');
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
    this.#become('member', `end the partition ${this.path}`);
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
      const why = `${parent.path} above it is not a partition`;
      return this.#refuse('partition-invalid', kind, why, 'to make that a partition first');
    }
    const why = `${parent.path} above it is not a partition ("${parent.partition().text}"), and only the owner of the cgroup above that can make it one`;
    const valid = 'a cgroup root directly below that of the machine, as root, or below a partition';
    return this.#refuse('not-delegated', kind, why, valid);
  }

  #refuse(reason: Parameters<typeof cgroupRefusal>[0], kind: string, why: string, valid: string): Error {
    return cgroupRefusal(reason, `${this.path} cannot become ${kind}: ${why}`, {
      path: this.path,
      value: kind,
      text: this.partition().text,
      valid,
    });
  }

  // Since Linux 6.7 a partition has these CPUs if there are any, not those of cpuset.cpus.
  #clearExclusive(changes: Changes, former: string): void {
    const doing = `clear the exclusive CPUs of ${this.path}`;
    changes.write({ action: 'set-cpus', doing, path: join(this.path, EXCLUSIVE), value: '' }, former);
  }

  #write(changes: Changes, kind: PartitionKind): void {
    const doing =
      kind === 'member' ? `end the partition ${this.path}` : `make ${this.path} a partition (${kind})`;
    const path = join(this.path, PARTITION);
    changes.write({ action: 'set-partition', doing, path, value: kind }, this.partition().kind);
  }

  // The groups beside this one with their own CPUs.
  #neighbours(): CpusetGroup[] {
    const beside = this.at(dirname(this.path)).children();
    return beside.filter(({ path }) => path !== this.path && existsSync(join(path, PARTITION)));
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
