// Reads MachineFacts. Changes nothing, and needs no rights: what is closed to this process is null.
import { existsSync, readdirSync, readlinkSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { thrownText } from '../base/check-options.js';
import { NumalignError, unlessRefused } from '../base/errors.js';
import { native } from '../base/native.js';
import { textOf } from '../base/text/text-of.js';
import { isInInitialCgroupNamespace } from '../cgroups/files/cgroup-namespace.js';
import { MadeGroupsInMemory } from '../cgroups/files/made-groups.js';
import { findHierarchy, mountOf } from '../cgroups/files/mounts.js';
import { folderOfProcess, limitsOfProcess, readMembership } from '../cgroups/limits.js';
import { openCpusetHierarchy } from '../cgroups/open-hierarchy.js';
import type { Settings } from '../decision/machine-settings.js';
import { MACHINE_CGROUP_ROOT } from '../input/config.js';
import { readKubeletFacts } from '../kubelet/kubelet-facts.js';
import { affinity } from '../machine/affinity.js';
import { CpuSet } from '../machine/cpu-set.js';
import { countHugepages, hugepageSizes, readNumber } from '../machine/hugepages.js';
import { ticklessCpus, unbalancedCpus } from '../machine/isolated-cpus.js';
import { onlineCpus } from '../machine/online-cpus.js';
import type { Topology } from '../machine/topology.js';
import { namedProcesses } from '../processes/named-processes.js';
import { checkUsable, scopeOf } from '../state/folder.js';
import { notTheGroups } from '../state/machine-group.js';
import { parseCpuMask } from './cpu-mask.js';
import type {
  CgroupFacts,
  GovernorFacts,
  HugepageFacts,
  InterruptFacts,
  MachineFacts,
  StateFolderFacts,
} from './facts.js';
import { readForeignCpusets } from './foreign-cpusets.js';
import { parseInterrupts } from './interrupts.js';

export interface FactsQuestion {
  readonly topology: Topology;
  readonly stateDir: string;
  /** What is on record; undefined where there is nothing, or it cannot be read. */
  readonly settings: Settings | undefined;
  /** Why nothing is granted in the folder, if so. */
  readonly refusal: string | undefined;
  /** Instead of that on record, or of the machine's; null: none. */
  readonly cgroupRoot: string | null | undefined;
}

const MOVERS = ['irqbalance', 'numad'];
const CPUFREQ = '/sys/devices/system/cpu/cpufreq';
const WORKQUEUES = '/sys/devices/virtual/workqueue/cpumask';
const NUMA_BALANCING = '/proc/sys/kernel/numa_balancing';
// linux/proc_ns.h
const INITIAL_PID_NAMESPACE = 'pid:[4026531836]';

export function readMachineFacts(question: FactsQuestion): MachineFacts {
  const { topology, stateDir, settings, refusal } = question;
  const online = onlineCpus(topology);
  const managed = settings?.managedCPUs ?? online;
  const candidates = settings ? managed.difference(settings.reservedSystemCPUs) : managed;
  const scope = scopeOf(stateDir);
  const cgroups = readCgroups(question, scope);
  const status = textOf('/proc/self/status') ?? '';
  const field = (name: string) => new RegExp(`^${name}:\\s*(\\S+)$`, 'm').exec(status)?.[1];
  const [capabilities, seccomp] = [field('CapEff'), field('Seccomp')];
  return {
    online,
    managed,
    candidates,
    firstCore: (
      topology.cores.find(({ cpus }) => cpus.intersects(candidates))?.cpus ?? CpuSet.EMPTY
    ).intersection(managed),
    allowed: affinity(),
    numaNodes: topology.nodes.length,
    cpusPerCore: topology.cpusPerCore,
    user: process.geteuid?.() ?? 0,
    capabilities: capabilities === undefined ? null : BigInt(`0x${capabilities}`),
    seccomp: seccomp === undefined ? null : Number(seccomp),
    memoryPolicyRefusal: memoryPolicyRefusal(),
    stateFolder: readStateFolder(stateDir, scope, refusal),
    cgroups,
    limits: ownFolder('cpu') === undefined ? null : unlessRefused(() => limitsOfProcess(process.pid), null),
    foreignCpusets: readForeignCpusets(typeof cgroups === 'string' ? undefined : cgroups.rootPath),
    kubelet: readKubeletFacts(),
    movers: [...namedProcesses(MOVERS)],
    seesAllProcesses: seesAllProcesses(),
    unbalanced: unbalancedCpus(),
    tickless: ticklessCpus(),
    governors: readGovernors(),
    interrupts: readInterrupts(),
    workqueues: parseCpuMask(textOf(WORKQUEUES) ?? ''),
    numaBalancing: existsSync(NUMA_BALANCING) ? (readNumber(NUMA_BALANCING) ?? null) : 0,
    hugepages: readHugepages(topology),
  };
}

function memoryPolicyRefusal(): string | undefined {
  try {
    native.memoryPolicy();
    return undefined;
  } catch (error) {
    if (error instanceof NumalignError) return error.errnoName ?? error.message;
    throw error;
  }
}

function readStateFolder(
  path: string,
  scope: StateFolderFacts['scope'],
  refusal: string | undefined,
): StateFolderFacts {
  let closed: string | undefined;
  try {
    checkUsable(path);
  } catch (error) {
    if (!(error instanceof NumalignError)) throw error;
    closed = error.message;
  }
  return {
    path,
    scope,
    exists: existsSync(path),
    fileSystem: mountOf(path)?.type ?? null,
    refusal: closed ?? refusal,
    notTheGroups: scope === 'machine' && existsSync(path) ? notTheGroups(path) : undefined,
  };
}

function readCgroups(question: FactsQuestion, scope: StateFolderFacts['scope']): CgroupFacts | string {
  const { settings, cgroupRoot } = question;
  const byItself = scope === 'machine' && isInInitialCgroupNamespace() ? MACHINE_CGROUP_ROOT : null;
  const used = cgroupRoot !== undefined ? cgroupRoot : settings ? settings.cgroupRoot : byItself;
  // What could be used is told also where nothing is.
  const root = used ?? MACHINE_CGROUP_ROOT;
  try {
    const hierarchy = openCpusetHierarchy(root, new MadeGroupsInMemory());
    return {
      version: hierarchy.version,
      root,
      rootPath: hierarchy.rootPath,
      isUsed: used !== null,
      whyNotWritable: hierarchy.canWrite() ? undefined : refusalOf(() => hierarchy.checkWritable()),
      whyNoPartition: refusalOf(() => {
        const why = hierarchy.whyNoPartition();
        if (why) throw why;
      }),
      own: ownPath(hierarchy.mount),
      delegated: delegatedRoot(hierarchy.mount),
    };
  } catch (error) {
    if (error instanceof NumalignError) return error.message;
    throw error;
  }
}

// The folder of this process's own cgroup.
function ownFolder(controller: string): string | undefined {
  const hierarchy = findHierarchy(controller);
  return hierarchy && unlessRefused(() => folderOfProcess(hierarchy, readMembership(process.pid)));
}

// From the mount's point, as --cgroup-root takes it.
function ownPath(mount: string): string | undefined {
  const folder = ownFolder('cpuset');
  return folder === undefined ? undefined : `/${relative(mount, folder)}`;
}

// The nearest cgroup above this process below which numalign could have its own, where that is not
// the root of all.
function delegatedRoot(mount: string): string | undefined {
  const name = MACHINE_CGROUP_ROOT;
  for (let above = ownPath(mount) ?? '/'; above !== '/'; above = dirname(above)) {
    const isOpen = unlessRefused(() =>
      openCpusetHierarchy(above + name, new MadeGroupsInMemory()).canWrite(),
    );
    if (isOpen) return above + name;
  }
  return undefined;
}

function refusalOf(check: () => void): string | undefined {
  try {
    check();
    return undefined;
  } catch (error) {
    return thrownText(error);
  }
}

// A pid namespace, or hidepid, leaves only some to be seen.
function seesAllProcesses(): boolean {
  try {
    return (
      readlinkSync('/proc/self/ns/pid') === INITIAL_PID_NAMESPACE && textOf('/proc/1/comm') !== undefined
    );
  } catch {
    return false;
  }
}

// null where there is no cpufreq: the firmware or the host decides.
function readGovernors(): readonly GovernorFacts[] | null {
  let policies: string[];
  try {
    policies = readdirSync(CPUFREQ);
  } catch {
    return null;
  }
  const governors = policies.flatMap((policy): GovernorFacts[] => {
    const governor = textOf(join(CPUFREQ, policy, 'scaling_governor'))?.trim();
    const cpus = textOf(join(CPUFREQ, policy, 'affected_cpus'))?.trim();
    return governor && cpus ? [{ governor, cpus: CpuSet.parse(cpus.replaceAll(' ', ',')) }] : [];
  });
  return governors.length > 0 ? governors : null;
}

function readInterrupts(): readonly InterruptFacts[] | null {
  const rows = parseInterrupts(textOf('/proc/interrupts') ?? '');
  if (!rows) return null;
  // There can be thousands that never come.
  return rows.flatMap((row): InterruptFacts[] => {
    if (row.counts.size === 0) return [];
    const list = textOf(`/proc/irq/${row.irq}/smp_affinity_list`)?.trim();
    return list === undefined ? [] : [{ ...row, cpus: CpuSet.parse(list) }];
  });
}

function readHugepages({ nodes }: Topology): HugepageFacts[] {
  return hugepageSizes().map((bytes) => {
    const counts = nodes.flatMap(({ hugepages }) => hugepages.filter((pool) => pool.bytes === bytes));
    const total = counts.reduce((sum, { count }) => sum + count, 0);
    return { bytes, total, free: countHugepages(bytes, 'free') ?? null };
  });
}
