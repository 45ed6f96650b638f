// Another machine's /sys, as far as a topology is read from it, for a process in a mount namespace.
import { spawnSync } from 'node:child_process';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { CpuSet, NodeSet } from '../../lib/index.js';

export interface SysCpu {
  /** The lowest CPU of its core. */
  readonly core: number;
  readonly node?: number;
  readonly capacity?: number;
  readonly maxMHz?: number;
}

/** What Linux says of the memory of a node. */
export interface SysMemory {
  /** In the list of NVIDIA's driver. */
  readonly isOfGpu?: boolean;
  /** The number of its memory tier. */
  readonly rank?: number;
  readonly bandwidth?: number;
  readonly latency?: number;
  /** The folder of the DAX device that it comes from, below /sys/devices. */
  readonly dax?: string;
}

export interface SysMachine {
  readonly cpus: readonly SysCpu[];
  /** The CPUs of each type of core of Intel's hybrid processors. */
  readonly types?: { readonly cpu_core: string; readonly cpu_atom: string; readonly cpu_lowpower?: string };
  /** By node: the distances to all nodes. */
  readonly distances?: readonly (readonly number[])[];
  /** The ids of the nodes; by default from 0. */
  readonly nodeIds?: readonly number[];
  /** By node; every node has 1 GiB. */
  readonly memory?: readonly SysMemory[];
}

type Write = (path: string, text: string) => void;

// Where the folder has what /proc/driver is to be.
const PROC_DRIVER = 'proc-driver';

// As the kernel writes a cpumask of up to 32 CPUs.
const mask = (cpus: CpuSet) => (cpus.words[0] ?? 0).toString(16).padStart(8, '0');

/** Writes the tree into a folder. */
export function writeSysTree(folder: string, machine: SysMachine): void {
  const { cpus, types, distances = [[10]], nodeIds = [...distances.keys()], memory = [] } = machine;
  const write: Write = (path, text) => {
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
  write('devices/system/node/online', String(NodeSet.from(nodeIds)));
  distances.forEach((row, i) => {
    const node = nodeIds[i]!;
    const own = where((cpu) => (cpu.node ?? 0) === node);
    const at = `devices/system/node/node${node}`;
    write(`${at}/cpumap`, mask(own));
    write(`${at}/cpulist`, String(own));
    write(`${at}/distance`, row.join(' '));
    write(`${at}/meminfo`, `Node ${node} MemTotal: 1048576 kB`);
  });
  for (const [i, of] of memory.entries()) writeMemory(folder, write, nodeIds[i]!, of);
  mkdirSync(join(folder, 'bus/pci/devices'), { recursive: true });
}

function writeMemory(folder: string, write: Write, node: number, of: SysMemory): void {
  const { isOfGpu, rank, bandwidth, latency, dax } = of;
  const initiators = `devices/system/node/node${node}/access0/initiators`;
  if (isOfGpu) write(`${PROC_DRIVER}/nvidia/gpus/0004:0${node}:00.0/numa_status`, `Node: ${node}`);
  if (rank !== undefined) write(`devices/virtual/memory_tiering/memory_tier${rank}/nodelist`, String(node));
  if (bandwidth !== undefined) write(`${initiators}/read_bandwidth`, String(bandwidth));
  if (latency !== undefined) write(`${initiators}/read_latency`, String(latency));
  if (dax === undefined) return;
  write(`devices/${dax}/target_node`, String(node));
  mkdirSync(join(folder, 'bus/dax/devices'), { recursive: true });
  symlinkSync(`../../../devices/${dax}`, join(folder, 'bus/dax/devices', `dax${node}.0`));
}

/** The output of a program that has this folder for /sys, and its list of GPUs in /proc/driver. */
export function outputUnder(sys: string, program: readonly string[]): string {
  const script = `mount --make-rprivate / && mount --bind "$1" /sys &&
    { [ ! -d "$1/${PROC_DRIVER}" ] || mount --bind "$1/${PROC_DRIVER}" /proc/driver; } &&
    shift && exec "$@"`;
  const { stdout, stderr, status } = spawnSync(
    'unshare',
    ['--mount', 'sh', '-c', script, 'sh', sys, ...program],
    { encoding: 'utf8' },
  );
  if (status !== 0) throw new Error(`${program.join(' ')}: ${stderr}`);
  return stdout;
}
