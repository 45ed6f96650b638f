// Another machine's /sys, as far as a topology is read from it, for a process in a mount namespace.
import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { CpuSet } from '../../lib/index.js';

export interface SysCpu {
  /** The lowest CPU of its core. */
  readonly core: number;
  readonly node?: number;
  readonly capacity?: number;
  readonly maxMHz?: number;
}

export interface SysMachine {
  readonly cpus: readonly SysCpu[];
  /** The CPUs of each type of core of Intel's hybrid processors. */
  readonly types?: { readonly cpu_core: string; readonly cpu_atom: string };
  /** By node: the distances to all nodes. */
  readonly distances?: readonly (readonly number[])[];
}

// As the kernel writes a cpumask of up to 32 CPUs.
const mask = (cpus: CpuSet) => (cpus.words[0] ?? 0).toString(16).padStart(8, '0');

/** Writes the tree into a folder. */
export function writeSysTree(folder: string, { cpus, types, distances = [[10]] }: SysMachine): void {
  const write = (path: string, text: string) => {
    const file = join(folder, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, `${text}\n`);
  };
  const where = (holds: (cpu: SysCpu) => boolean) =>
    CpuSet.from(cpus.flatMap((cpu, id) => (holds(cpu) ? [id] : [])));
  const all = where(() => true);
  for (const name of ['online', 'possible', 'present']) write(`devices/system/cpu/${name}`, String(all));
  cpus.forEach(({ core, capacity, maxMHz }, id) => {
    const at = `devices/system/cpu/cpu${id}`;
    const siblings = mask(where((cpu) => cpu.core === core));
    write(`${at}/topology/core_id`, String(core));
    write(`${at}/topology/physical_package_id`, '0');
    for (const name of ['thread_siblings', 'core_cpus']) write(`${at}/topology/${name}`, siblings);
    for (const name of ['core_siblings', 'package_cpus']) write(`${at}/topology/${name}`, mask(all));
    if (capacity !== undefined) write(`${at}/cpu_capacity`, String(capacity));
    if (maxMHz !== undefined) write(`${at}/cpufreq/cpuinfo_max_freq`, String(maxMHz * 1000));
  });
  for (const [type, list] of Object.entries(types ?? {})) write(`devices/${type}/cpus`, list);
  write('devices/system/node/online', String(CpuSet.from(distances.keys())));
  distances.forEach((row, node) => {
    const own = where((cpu) => (cpu.node ?? 0) === node);
    const at = `devices/system/node/node${node}`;
    write(`${at}/cpumap`, mask(own));
    write(`${at}/cpulist`, String(own));
    write(`${at}/distance`, row.join(' '));
    write(`${at}/meminfo`, `Node ${node} MemTotal: 1048576 kB`);
  });
  mkdirSync(join(folder, 'bus/pci/devices'), { recursive: true });
}

/** The output of a program that has this folder for /sys. */
export function outputUnder(sys: string, program: readonly string[]): string {
  const script = 'mount --make-rprivate / && mount --bind "$1" /sys && shift && exec "$@"';
  const { stdout, stderr, status } = spawnSync(
    'unshare',
    ['--mount', 'sh', '-c', script, 'sh', sys, ...program],
    { encoding: 'utf8' },
  );
  if (status !== 0) throw new Error(`${program.join(' ')}: ${stderr}`);
  return stdout;
}
