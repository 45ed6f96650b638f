// Processes that are shared members, their CPUs in the kernel, and managers with cgroups of their
// own.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';
import { CpuSet, type Manager, type ManagerOptions, openManager } from '../../lib/index.js';
import { hierarchy, ROOT, removeAll } from '../cgroups/own-root.js';

const SOURCE = fileURLToPath(new URL('sampler.c', import.meta.url));
const FOLDER = fileURLToPath(new URL('../../build/enforcement/', import.meta.url));

/** A manager, closed after the test. */
export async function opened(options: ManagerOptions): Promise<Manager> {
  const manager = await openManager(options);
  onTestFinished(() => manager.close());
  return manager;
}

/** The option for the test's own cgroups, which are removed after it. */
export function ownCgroups(): { cgroupRoot: string } {
  onTestFinished(() => removeAll(groupPath()));
  return { cgroupRoot: ROOT };
}

/** A cgroup outside numalign, with all CPUs or these. */
export function strangeGroup(cpus?: string): string {
  const path = join(hierarchy!.mount.point, `numalign-test-outside-${process.pid}`);
  mkdirSync(path);
  onTestFinished(() => removeAll(path));
  for (const file of ['cpuset.cpus', 'cpuset.mems']) {
    writeFileSync(join(path, file), readFileSync(join(hierarchy!.mount.point, file)));
  }
  if (cpus !== undefined) writeFileSync(join(path, 'cpuset.cpus'), cpus);
  return path;
}

/** A small file system. */
export function smallDisk(kilobytes: number): string {
  const disk = mkdtempSync('/tmp/numalign-test-disk-');
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${kilobytes}k`, 'tmpfs', disk]);
  onTestFinished(() => {
    execFileSync('umount', ['-l', disk]);
    rmSync(disk, { recursive: true });
  });
  return disk;
}

/** Writes a file until its file system is full. */
export function fill(path: string): void {
  try {
    for (;;) writeFileSync(path, Buffer.alloc(512), { flag: 'a' });
  } catch {
    // No more.
  }
}

/** The folder of a cgroup below our root. */
export const groupPath = (...names: string[]) => join(hierarchy!.mount.point, ROOT, ...names);

/** The cpuset cgroup of a thread, below the root of the hierarchy. */
export const cgroupOf = (pid: number | 'self', tid: number | string = pid) =>
  /:cpuset:(.*)$/m.exec(
    readFileSync(`/proc/${pid}/task/${tid === 'self' ? process.pid : tid}/cgroup`, 'utf8'),
  )![1]!;

export const threadsOf = (pid: number) => readdirSync(`/proc/${pid}/task`).map(Number);

/** The CPUs that the kernel allows a thread. */
export const maskOf = (tid: number) =>
  /^Cpus_allowed_list:\s*(\S+)$/m.exec(readFileSync(`/proc/${tid}/status`, 'utf8'))![1]!;

/** Returns once a thread has run for a millisecond more. */
export async function hasRun(tid: number): Promise<void> {
  const runtime = () => Number(readFileSync(`/proc/${tid}/schedstat`, 'utf8').split(' ')[0]);
  for (const enough = runtime() + 1e6; runtime() < enough; )
    await new Promise((resolve) => setTimeout(resolve, 1));
}

/** How often the threads of a process were given a CPU. */
export const turnsOf = (pid: number) =>
  threadsOf(pid).reduce(
    (sum, tid) => sum + Number(readFileSync(`/proc/${tid}/schedstat`, 'utf8').split(' ')[2]),
    0,
  );

/** The distinct masks of the threads of a process. Some threads may end meanwhile. */
export const masksOf = (pid: number) =>
  [...new Set(threadsOf(pid).flatMap((tid) => unlessEnded(() => maskOf(tid)) ?? []))].sort();

function unlessEnded<T>(look: () => T): T | undefined {
  try {
    return look();
  } catch (error) {
    if (!['ENOENT', 'ESRCH'].includes((error as NodeJS.ErrnoException).code!)) throw error;
    return undefined;
  }
}

/** Like the thread itself would. */
export function choose(tid: number, cpus: string): void {
  execFileSync('taskset', ['-pc', cpus, String(tid)], { stdio: 'ignore' });
}

/** The CPU that the next acquire gets. */
export async function nextCpu(manager: Manager): Promise<number> {
  const grant = await manager.acquire({ cpu: 1 });
  await grant.release();
  return grant.cpus.first!;
}

export const filesOf = (stateDir: string) => readdirSync(join(stateDir, 'members')).sort();

/** Ended after the test, if it still runs. */
export function child(command: string, args: readonly string[], options = {}): ChildProcess {
  const process = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'], ...options });
  onTestFinished(() => ended(process));
  return process;
}

/** Returns once it has ended. */
export async function ended(process: ChildProcess): Promise<void> {
  process.kill('SIGKILL');
  if (process.exitCode === null && process.signalCode === null) await once(process, 'exit');
}

/** A process that starts a thread for each call. */
export async function breeder(): Promise<{ pid: number; breed: () => Promise<void> }> {
  const script = `const { Worker } = require('worker_threads');
    require('readline').createInterface({ input: process.stdin }).on('line', () =>
      new Worker('setInterval(() => {}, 1000)', { eval: true }).once('online', () => console.log('born')));
    console.log('up');`;
  const process = child(globalThis.process.execPath, ['-e', script]);
  const lines = createInterface({ input: process.stdout! })[Symbol.asyncIterator]();
  await lines.next();
  return {
    pid: process.pid!,
    breed: async () => {
      process.stdin!.write('\n');
      await lines.next();
    },
  };
}

/** The sampler was on a CPU, from one time to another (process.hrtime). */
export interface Stay {
  readonly cpu: number;
  readonly from: bigint;
  readonly to: bigint;
}

export interface Sampler {
  readonly pid: number;
  /** Ends it; returns the runs that it saw. */
  end(): Promise<readonly Stay[]>;
}

/**
 * A process that samples its CPU as fast as it can; aggressive threads ask for all CPUs all the
 * time.
 */
export async function sampler(calm: number, aggressive = 0, niceness = 19): Promise<Sampler> {
  // Nice: it takes idle CPUs, and the acquiring process need not wait for it.
  const process = child('nice', ['-n', String(niceness), samplerProgram(), String(calm), String(aggressive)]);
  const lines = createInterface({ input: process.stdout! })[Symbol.asyncIterator]();
  await lines.next();
  return {
    pid: process.pid!,
    async end() {
      const exit = once(process, 'exit');
      process.stdin!.end();
      const stays: Stay[] = [];
      for (let line = await lines.next(); !line.done; line = await lines.next()) {
        const [cpu, from, to] = line.value.split(' ');
        stays.push({ cpu: Number(cpu), from: BigInt(from!), to: BigInt(to!) });
      }
      const [code] = await exit;
      if (code !== 0) throw new Error(`the sampler ended with ${code}`);
      return stays;
    },
  };
}

function samplerProgram(): string {
  const program = `${FOLDER}sampler`;
  if (existsSync(program) && statSync(program).mtimeMs > statSync(SOURCE).mtimeMs) return program;
  mkdirSync(FOLDER, { recursive: true });
  // Two processes that start at once both compile; each puts a whole program in place.
  const own = `${program}.${process.pid}`;
  execFileSync('cc', ['-O2', '-std=gnu11', '-Wall', '-Wextra', '-Werror', '-o', own, SOURCE, '-pthread']);
  renameSync(own, program);
  return program;
}

/** Samples on CPUs while these were exclusive to a grant. */
export function overlaps(seen: readonly Stay[], held: readonly Stay[]): readonly Stay[] {
  const byCpu = new Map<number, Stay[]>();
  for (const stay of held) byCpu.set(stay.cpu, [...(byCpu.get(stay.cpu) ?? []), stay]);
  return seen.filter((stay) => {
    const list = byCpu.get(stay.cpu) ?? [];
    // In order, and disjoint: the first that has not ended before it.
    let [low, high] = [0, list.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (list[middle]!.to < stay.from) low = middle + 1;
      else high = middle;
    }
    return low < list.length && list[low]!.from <= stay.to;
  });
}

/** Acquires and releases; returns which CPUs were held when. */
export async function cycles(manager: Manager, count: number): Promise<readonly Stay[]> {
  const held: Stay[] = [];
  for (let i = 0; i < count; i++) {
    const grant = await manager.acquire({ cpu: 1 });
    const from = process.hrtime.bigint();
    await new Promise(setImmediate);
    const to = process.hrtime.bigint();
    for (const cpu of grant.cpus) held.push({ cpu, from, to });
    await grant.release();
  }
  return held;
}

export const cpus = (list: string) => CpuSet.parse(list);
