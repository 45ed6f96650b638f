// FakeResctrl: /sys/fs/resctrl in memory, by Documentation/filesystems/resctrl.rst. Not tried
// against hardware.
import { CpuSet } from '../../../lib/machine/cpu-set.js';
import type { KernelFiles } from '../../../lib/quiet/kernel/kernel-files.js';

const ROOT = '/sys/fs/resctrl';

interface FakeGroup {
  /** By resource, then by cache id. */
  masks: Map<string, Map<number, number>>;
  cpus: CpuSet;
  mode: 'shareable' | 'exclusive';
}

export interface FakeOptions {
  readonly ways?: number;
  readonly minBits?: number;
  readonly shareable?: number;
  readonly closids?: number;
  /** The CPUs of each cache id. */
  readonly caches?: readonly (readonly number[])[];
  readonly codeAndData?: boolean;
  readonly isMounted?: boolean;
  readonly hasCat?: boolean;
}

const popcount = (mask: number) => mask.toString(2).replaceAll('0', '').length;
const isContiguous = (mask: number) => /^1+0*$/.test(mask.toString(2));

export class FakeResctrl implements KernelFiles {
  readonly groups = new Map<string, FakeGroup>();
  readonly resources: readonly string[];
  readonly online: CpuSet;
  readonly all: number;
  /** Changes so far. */
  writes = 0;
  /** The process stops before its change of this number; null: never. */
  stopsAt: number | null = null;
  readonly #caches: readonly (readonly number[])[];
  readonly #options: Required<Omit<FakeOptions, 'caches' | 'codeAndData'>>;
  #status = 'ok';

  constructor(options: FakeOptions = {}) {
    const { ways = 20, caches = [[0, 1, 2, 3]], codeAndData = false, ...rest } = options;
    this.#options = { ways, minBits: 1, shareable: 0, closids: 16, isMounted: true, hasCat: true, ...rest };
    this.#caches = caches;
    this.all = 2 ** ways - 1;
    this.resources = codeAndData ? ['L3CODE', 'L3DATA'] : ['L3'];
    this.online = CpuSet.from(caches.flat());
    this.groups.set('', { masks: this.#fullMasks(), cpus: this.online, mode: 'shareable' });
  }

  /** The mask of a group on a cache; '' is the default group. */
  maskOf(name: string, id: number, resource = this.resources[0]!): number {
    return this.groups.get(name)!.masks.get(resource)!.get(id)!;
  }

  /** Everything that the kernel would show. */
  dump(): string {
    return [...this.groups]
      .map(([name, group]) => `${name}\n${this.#schemata(group)}\n${group.cpus}\n${group.mode}`)
      .sort()
      .join('\n\n');
  }

  read(path: string): string | undefined {
    const cpu = /^\/sys\/devices\/system\/cpu\/cpu(\d+)\/cache\/index(\d)\/(level|id)$/.exec(path);
    if (cpu) return this.#cacheFile(Number(cpu[1]), cpu[2]!, cpu[3]!);
    if (!this.#options.isMounted) return undefined;
    const info = /^\/sys\/fs\/resctrl\/info\/(.+)$/.exec(path);
    if (info) return this.#infoFile(info[1]!);
    const [group, file] = this.#locate(path);
    if (group === undefined) return undefined;
    if (file === 'schemata') return this.#schemata(group).trim();
    if (file === 'cpus_list') return String(group.cpus);
    return file === 'mode' ? group.mode : undefined;
  }

  list(path: string): readonly string[] {
    if (/^\/sys\/devices\/system\/cpu\/cpu\d+\/cache$/.test(path)) return ['index0', 'index3', 'uevent'];
    if (!this.#options.isMounted) return [];
    if (path === `${ROOT}/info`)
      return ['last_cmd_status', ...(this.#options.hasCat ? this.resources : []), 'MB'];
    if (path !== ROOT) return [];
    const names = [...this.groups.keys()].filter((name) => name !== '');
    return [...names, 'cpus', 'cpus_list', 'info', 'mode', 'mon_groups', 'schemata', 'tasks'].sort();
  }

  exists(path: string): boolean {
    if (!this.#options.isMounted) return false;
    if (path === ROOT || path === `${ROOT}/info`) return true;
    return this.#group(path) !== undefined || this.read(path) !== undefined;
  }

  write(path: string, value: string): void {
    this.#step();
    const [group, file] = this.#locate(path);
    if (group === undefined) throw this.#refused('ENOENT', 'ok');
    if (file === 'schemata') this.#writeSchemata(group, value);
    else if (file === 'cpus_list') this.#writeCpus(group, value);
    else if (file === 'mode') this.#writeMode(group, value);
    else throw this.#refused('EACCES', 'ok');
    this.#status = 'ok';
  }

  isWritable(): boolean {
    return true;
  }

  link(): undefined {
    return undefined;
  }

  makeFolder(path: string): void {
    this.#step();
    if (this.#group(path)) throw this.#refused('EEXIST', 'ok');
    if (this.groups.size >= this.#options.closids) throw this.#refused('ENOSPC', 'Out of CLOSIDs');
    this.groups.set(path.slice(ROOT.length + 1), {
      masks: this.#fullMasks(),
      cpus: CpuSet.EMPTY,
      mode: 'shareable',
    });
    this.#status = 'ok';
  }

  removeFolder(path: string): void {
    this.#step();
    const group = this.#group(path);
    if (group === undefined) return;
    const root = this.groups.get('')!;
    root.cpus = root.cpus.union(group.cpus);
    this.groups.delete(path.slice(ROOT.length + 1));
  }

  #step(): void {
    if (this.stopsAt !== null && this.writes >= this.stopsAt) throw new Error('the process stops here');
    this.writes++;
  }

  #refused(code: string, status: string): NodeJS.ErrnoException {
    this.#status = status;
    return Object.assign(new Error(`${code}: the kernel refuses`), { code });
  }

  // The ways that no exclusive group has.
  #fullMasks(): Map<string, Map<number, number>> {
    const exclusive = [...this.groups.values()].filter(({ mode }) => mode === 'exclusive');
    const free = (resource: string, id: number) =>
      exclusive.reduce((mask, group) => (mask & ~group.masks.get(resource)!.get(id)!) >>> 0, this.all);
    return new Map(
      this.resources.map((name) => [name, new Map(this.#caches.map((_, id) => [id, free(name, id)]))]),
    );
  }

  #group(path: string): FakeGroup | undefined {
    return path === ROOT ? this.groups.get('') : this.groups.get(path.slice(ROOT.length + 1));
  }

  #locate(path: string): [FakeGroup | undefined, string] {
    const slash = path.lastIndexOf('/');
    return [this.#group(path.slice(0, slash)), path.slice(slash + 1)];
  }

  // Padded, with a line of another resource, like the kernel's text.
  #schemata({ masks }: FakeGroup): string {
    const digits = Math.ceil(this.#options.ways / 4);
    const lines = [...masks].map(([name, line]) => {
      const pairs = [...line].map(([id, mask]) => `${id}=${mask.toString(16).padStart(digits, '0')}`);
      return `${name.padStart(6)}:${pairs.join(';')}`;
    });
    return ['    MB:0=100', ...lines, ''].join('\n');
  }

  #cacheFile(cpu: number, index: string, file: string): string | undefined {
    const id = this.#caches.findIndex((cpus) => cpus.includes(cpu));
    if (id === -1 || (index !== '0' && index !== '3')) return undefined;
    if (file === 'level') return index === '3' ? '3' : '1';
    return index === '3' ? String(id) : String(cpu);
  }

  #infoFile(path: string): string | undefined {
    if (path === 'last_cmd_status') return this.#status;
    if (path === 'MB/num_closids') return String(this.#options.closids);
    const [resource, file] = path.split('/');
    if (!this.#options.hasCat || !this.resources.includes(resource!)) return undefined;
    const { minBits, shareable, closids } = this.#options;
    if (file === 'cbm_mask') return this.all.toString(16);
    if (file === 'min_cbm_bits') return String(minBits);
    if (file === 'shareable_bits') return shareable.toString(16);
    return file === 'num_closids' ? String(closids) : undefined;
  }

  // All of the write or nothing.
  #writeSchemata(group: FakeGroup, value: string): void {
    if (!value.endsWith('\n')) throw this.#refused('EINVAL', 'ok');
    const staged: [string, number, number][] = [];
    for (const line of value.trimEnd().split('\n')) {
      const [name, pairs] = line.split(':');
      if (pairs === undefined) throw this.#refused('EINVAL', "Missing ':'");
      if (!this.resources.includes(name!))
        throw this.#refused('EINVAL', `Unknown or unsupported resource name '${name}'`);
      for (const pair of pairs.split(';')) {
        const [id, text] = pair.split('=');
        const mask = Number.parseInt(text!, 16);
        this.#checkMask(group, name!, Number(id), mask);
        staged.push([name!, Number(id), mask]);
      }
    }
    for (const [name, id, mask] of staged) group.masks.get(name)!.set(id, mask);
  }

  #checkMask(group: FakeGroup, name: string, id: number, mask: number): void {
    if (!group.masks.get(name)!.has(id)) throw this.#refused('EINVAL', `Unknown domain ${id}`);
    if (!(mask > 0) || mask > this.all) throw this.#refused('EINVAL', 'Mask out of range');
    if (!isContiguous(mask))
      throw this.#refused('EINVAL', `The mask ${mask.toString(16)} has non-consecutive 1-bits`);
    if (popcount(mask) < this.#options.minBits)
      throw this.#refused('EINVAL', `Need at least ${this.#options.minBits} bits in the mask`);
    for (const other of this.groups.values()) {
      if (other === group || (other.masks.get(name)!.get(id)! & mask) === 0) continue;
      if (other.mode === 'exclusive' || group.mode === 'exclusive')
        throw this.#refused('EINVAL', 'Overlaps with exclusive group');
    }
  }

  #writeCpus(group: FakeGroup, value: string): void {
    const cpus = CpuSet.parse(value.trim());
    if (!cpus.isSubsetOf(this.online)) throw this.#refused('EINVAL', 'Can only assign online CPUs');
    const root = this.groups.get('')!;
    const dropped = group.cpus.difference(cpus);
    if (group === root && !dropped.isEmpty)
      throw this.#refused('EINVAL', "Can't drop CPUs from default group");
    for (const other of this.groups.values()) other.cpus = other.cpus.difference(cpus);
    root.cpus = root.cpus.union(dropped);
    group.cpus = cpus;
  }

  #writeMode(group: FakeGroup, value: string): void {
    if (value !== 'shareable\n' && value !== 'exclusive\n') throw this.#refused('EINVAL', 'Unknown mode');
    if (value === 'exclusive\n') {
      for (const other of this.groups.values()) {
        if (other === group) continue;
        for (const [name, line] of group.masks)
          for (const [id, mask] of line)
            if ((other.masks.get(name)!.get(id)! & mask) !== 0)
              throw this.#refused('EINVAL', 'Schemata overlaps');
      }
    }
    group.mode = value.trim() as FakeGroup['mode'];
  }
}
