// The limits on CPU time and memory of a cgroup and those above it. A grant does not lift them.
import { dirname, join } from 'node:path';
import type { NumalignError } from '../base/errors.js';
import { attempt, cgroupRefusal, look } from './files/cgroup-error.js';
import { readIfThere } from './files/cgroup-files.js';
import { type Throttling, throttling } from './files/cpu-stat.js';
import { findHierarchy, folderOf, type Hierarchy, neededHierarchy, pathIn } from './files/hierarchies.js';

/** A quota of CPU time and its cgroup. */
export interface CpuLimit {
  /** The folder of the cgroup with the limit. */
  path: string;
  /** The quota in CPUs: `quotaUs` divided by `periodUs`. */
  cpus: number;
  /** CPU time that the cgroup may use in each period, in microseconds. */
  quotaUs: number;
  /** The length of a period, in microseconds. */
  periodUs: number;
  /** How often the cgroup used up the quota; null if the kernel does not count it. */
  throttled: Throttling | null;
}

/** A limit of memory and its cgroup. */
export interface MemoryLimit {
  /** The folder of the cgroup with the limit. */
  path: string;
  /** The limit in bytes: `memory.max`, or `memory.limit_in_bytes` with cgroup v1. */
  bytes: number;
}

/** The tightest limit of each kind; null if none is visible. */
export interface CgroupLimits {
  /** The quota that gives the least CPU time. */
  cpuMax: CpuLimit | null;
  /** The smallest limit of memory. */
  memoryMax: MemoryLimit | null;
}

/** The text of /proc/PID/cgroup. @throws ERR_CGROUP (`no-process`) */
export function readMembership(pid: number, tid?: number): string {
  const path = tid === undefined ? `/proc/${pid}/cgroup` : `/proc/${pid}/task/${tid}/cgroup`;
  const step = { action: 'look', doing: `read ${path}`, path, value: pid } as const;
  const text = attempt(step, () => readIfThere(path));
  if (text) return text;
  const which = tid === undefined ? `${pid}` : `${pid} with a thread ${tid}`;
  const valid = 'the number of a living process';
  throw cgroupRefusal('no-process', `there is no process ${which}`, { path, value: tid ?? pid, valid });
}

/** The folder of a process in a hierarchy; undefined if that part is not mounted. */
export function folderOfProcess(hierarchy: Hierarchy, membership: string): string | undefined {
  const path = pathIn(hierarchy, membership);
  return path === undefined ? undefined : folderOf(hierarchy, path);
}

/** The same; undefined also outside of this cgroup namespace, where a path begins with `/..`. */
export function visibleFolder(hierarchy: Hierarchy, membership: string): string | undefined {
  const folder = folderOfProcess(hierarchy, membership);
  return folder?.split('/').includes('..') ? undefined : folder;
}

export function notMounted({ mount: { point } }: Hierarchy, pid: number): NumalignError {
  const valid = `a process inside ${point}`;
  const message = `the cgroup of process ${pid} is not mounted here`;
  return cgroupRefusal('missing', message, { path: point, value: pid, valid });
}

/**
 * The folder of a process's cgroup in the hierarchy of a controller.
 * @throws ERR_CGROUP without such a hierarchy or process, or if the cgroup is outside of what is
 *   mounted here
 */
export function cgroupFolder(pid: number, controller: string): string {
  const hierarchy = neededHierarchy(controller);
  const folder = visibleFolder(hierarchy, readMembership(pid));
  if (folder === undefined) throw notMounted(hierarchy, pid);
  return folder;
}

/** The limits at and above a process, in the hierarchies of the cpu and memory controllers. */
export function limitsOfProcess(pid: number): CgroupLimits {
  const membership = readMembership(pid);
  const from = (controller: string) => {
    const hierarchy = findHierarchy(controller);
    const folder = hierarchy && folderOfProcess(hierarchy, membership);
    return hierarchy && folder !== undefined ? foldersUp(hierarchy, folder) : [];
  };
  return limitsOf(from('cpu'), from('memory'));
}

function foldersUp({ mount }: Pick<Hierarchy, 'mount'>, folder: string): string[] {
  return folder === mount.point ? [folder] : [folder, ...foldersUp({ mount }, dirname(folder))];
}

/** The tightest limits that these folders have. */
export function limitsOf(cpuFolders: string[], memoryFolders: string[]): CgroupLimits {
  return {
    cpuMax: tightest(cpuFolders.map(cpuLimit), ({ cpus }) => cpus),
    memoryMax: tightest(memoryFolders.map(memoryLimit), ({ bytes }) => bytes),
  };
}

function tightest<T>(limits: (T | undefined)[], size: (limit: T) => number): T | null {
  return limits.reduce<T | null>(
    (least, limit) => (limit && (!least || size(limit) < size(least)) ? limit : least),
    null,
  );
}

/** The quota of a cgroup itself. @throws ERR_CGROUP */
export function cpuLimit(path: string): CpuLimit | undefined {
  const read = (file: string) => readIn(path, file);
  const [quota, period] = read('cpu.max')?.split(' ') ?? [
    read('cpu.cfs_quota_us'),
    read('cpu.cfs_period_us'),
  ];
  const [quotaUs, periodUs] = [Number(quota), Number(period)];
  // No quota is `max` in v2, -1 in v1.
  if (!(quotaUs > 0 && periodUs > 0)) return undefined;
  return { path, cpus: quotaUs / periodUs, quotaUs, periodUs, throttled: throttling(read('cpu.stat')) };
}

// No limit is `max` in v2, and the greatest possible number of pages in v1.
const NO_LIMIT = 2 ** 62;

function memoryLimit(path: string): MemoryLimit | undefined {
  const bytes = Number(readIn(path, 'memory.max') ?? readIn(path, 'memory.limit_in_bytes'));
  return bytes >= 0 && bytes < NO_LIMIT ? { path, bytes } : undefined;
}

function readIn(folder: string, file: string): string | undefined {
  const path = join(folder, file);
  return look(path, () => readIfThere(path))?.trim();
}
