// irqbalance: the CPUs that it must keep interrupts off, set by its socket as irqbalance-ui does.
import { parseProcStat } from '../../base/text/proc-stat.js';
import { CpuSet } from '../../machine/cpu-set.js';
import type { NamedProcess } from '../../processes/named-processes.js';
import { parseCpuMask } from '../kernel/cpu-mask.js';
import { type Ask, banCpus, failure, irqbalanceState } from '../kernel/irqbalance-client.js';
import type { KernelFiles } from '../kernel/kernel-files.js';
import type { PartDemand, Setting } from '../kernel/setting.js';

const FOLDER = '/run/irqbalance';
const SOCKET = /^irqbalance(\d+)\.sock$/;
// /proc/net/unix shows NUL as @, and a name may be padded with NULs.
const ABSTRACT_SOCKET = /(@irqbalance(\d+)\.sock@*)$/;
const DEFAULT_INTERVAL = 10;

interface Socket {
  readonly path: string;
  readonly pid: string;
}

function socketsOf(files: KernelFiles): Socket[] {
  const sockets = files.list(FOLDER).flatMap((name): Socket[] => {
    const pid = SOCKET.exec(name)?.[1];
    return pid === undefined ? [] : [{ path: `${FOLDER}/${name}`, pid }];
  });
  // If irqbalance cannot make a file, it uses an abstract socket.
  const lines = sockets.length > 0 ? [] : (files.read('/proc/net/unix') ?? '').split('\n');
  const abstract = lines.flatMap((line): Socket[] => {
    const [, path, pid] = ABSTRACT_SOCKET.exec(line) ?? [];
    return path === undefined ? [] : [{ path, pid: pid! }];
  });
  // A killed irqbalance leaves its file behind.
  return [...sockets, ...abstract].filter(({ pid }) => files.read(`/proc/${pid}/comm`) === 'irqbalance');
}

const startOf = (files: KernelFiles, pid: string): string =>
  parseProcStat(files.read(`/proc/${pid}/stat`) ?? '').starttime;

// Bans that were sent but not applied yet, by process. Until its next scan, irqbalance returns the
// earlier bans.
const latestBans = new Map<string, { readonly value: string; readonly until: number }>();

class BannedCpus implements Setting {
  readonly path: string;
  readonly identity: string;
  // Reads are late until its next scan. Another process may have banned CPUs.
  readonly isDelayed = true;
  readonly title: string;
  #interval = DEFAULT_INTERVAL;

  constructor(
    files: KernelFiles,
    private readonly ask: Ask,
    { path, pid }: Socket,
  ) {
    this.path = path;
    this.identity = `${pid} ${startOf(files, pid)}`;
    this.title = `irqbalance (process ${pid})`;
  }

  /** @throws like `irqbalanceState` */
  async read(): Promise<string | undefined> {
    const { value, until } = latestBans.get(this.identity) ?? { until: 0 };
    if (until > performance.now()) return value;
    latestBans.delete(this.identity);
    try {
      const { interval, banned } = await irqbalanceState(this.ask, this.#address);
      this.#interval = interval;
      const cpus = parseCpuMask(banned);
      if (cpus) return String(cpus);
    } catch (error) {
      if (['ENOENT', 'ECONNREFUSED'].includes((error as NodeJS.ErrnoException).code ?? '')) return undefined;
      throw error;
    }
    throw failure('EINVAL', `${this.title} does not say which CPUs are banned`);
  }

  async write(value: string): Promise<void> {
    await banCpus(this.ask, this.#address, value);
    // A scan takes a while, too.
    latestBans.set(this.identity, { value, until: performance.now() + (this.#interval + 1) * 1000 });
  }

  target(base: string, { cpus }: PartDemand): string {
    return String(CpuSet.parse(base).union(cpus));
  }

  disturbs(value: string, { cpus }: PartDemand): CpuSet {
    return cpus.difference(CpuSet.parse(value));
  }

  get #address(): string {
    return this.path.startsWith('@') ? this.path.replaceAll('@', '\0') : this.path;
  }
}

export function irqbalanceSettings(files: KernelFiles, ask: Ask): Setting[] {
  return socketsOf(files).map((socket) => new BannedCpus(files, ask, socket));
}

/** A sentence for each irqbalance without a socket: it may move interrupts back. */
export function rivalObstacles(files: KernelFiles, running: Iterable<NamedProcess>, cpus: CpuSet): string[] {
  const pids = new Set(socketsOf(files).map(({ pid }) => pid));
  return [...running]
    .filter(({ pid }) => !pids.has(String(pid)))
    .map(
      ({ name, pid }) =>
        `${name} (process ${pid}) has no socket in ${FOLDER} and may move interrupts back: start it with IRQBALANCE_BANNED_CPULIST=${cpus}, or stop it`,
    );
}
