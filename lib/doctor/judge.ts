// Judges a machine by its facts: what numalign can and cannot do there, and what to change. Pure.
import { CpuSet } from '../cpu-set.js';
import { kubeletConflict } from '../kubelet-conflict.js';
import { formatBytes } from '../quantity.js';
import type { CgroupFacts, ForeignCpuset, InterruptFacts, MachineFacts } from './facts.js';
import { type Finding, ok, problem, unknown, type Verdict, warning } from './finding.js';

type Check = (facts: MachineFacts) => Verdict;

// In the order in which they are shown.
const CHECKS: Readonly<Record<string, Readonly<Record<string, Check>>>> = {
  'this user': {
    'state-folder': stateFolder,
    capabilities,
    'allowed-cpus': allowedCpus,
    seccomp,
    'memory-policy': memoryPolicy,
  },
  cgroups: { cgroups, enforcement, 'cpu-quota': cpuQuota, cpusets },
  CPUs: { smt, 'isolated-cpus': isolatedCpus, governors, interrupts, workqueues },
  memory: { 'numa-balancing': numaBalancing, hugepages },
  'other managers': { kubelet, movers },
};

export function judge(facts: MachineFacts): Finding[] {
  return Object.entries(CHECKS).flatMap(([group, checks]) =>
    Object.entries(checks).map(([check, verdict]) => ({ group, check, ...verdict(facts) })),
  );
}

// linux/capability.h
const CAP_SYS_ADMIN = 21n;
const CAP_SYS_NICE = 23n;

const has = (capabilities: bigint, bit: bigint) => ((capabilities >> bit) & 1n) === 1n;

// More would not be read.
const MOST_NAMED = 4;

function listSome<T>(all: readonly T[], textOf: (one: T) => string): string {
  const more = all.length - MOST_NAMED;
  return [...all.slice(0, MOST_NAMED).map(textOf), ...(more > 0 ? [`${more} more`] : [])].join(', ');
}

const cpusText = (cpus: CpuSet) => `CPU${cpus.size === 1 ? '' : 's'} ${cpus}`;

function stateFolder({ stateFolder: { path, scope, exists, fileSystem, refusal } }: MachineFacts): Verdict {
  if (refusal !== undefined) {
    const other = '--state-dir DIR uses a folder of your own, of which the rest of the machine knows nothing';
    const advice = scope === 'machine' ? `as root: install -d -m 2770 -g numalign ${path}; or ${other}` : other;
    return problem(refusal, advice);
  }
  const where = `${path} (${scope}, ${fileSystem ?? 'unknown file system'})`;
  const found = exists ? `${where} can be written` : `${where} is not there yet and can be made`;
  if (fileSystem === 'overlay' && scope === 'machine') {
    return warning(`${found}, but is this container's own`, `mount the machine's ${path} into the container`);
  }
  if (fileSystem !== null && /^(nfs|cifs|smb|9p|ceph|fuse)/.test(fileSystem)) {
    return warning(`${found}; whether its locks hold is up to a server`, 'a folder on a file system of this machine');
  }
  return ok(found);
}

function capabilities({ user, capabilities }: MachineFacts): Verdict {
  const who = user === 0 ? 'root' : `user ${user}`;
  if (capabilities === null) return unknown(`${who}; its capabilities cannot be read`);
  const named = [
    { name: 'CAP_SYS_NICE', bit: CAP_SYS_NICE },
    { name: 'CAP_SYS_ADMIN', bit: CAP_SYS_ADMIN },
  ];
  const held = named.filter(({ bit }) => has(capabilities, bit)).map(({ name }) => name);
  const found = `${who}, ${held.length > 0 ? `with ${held.join(' and ')}` : 'with neither CAP_SYS_NICE nor CAP_SYS_ADMIN'}`;
  if (has(capabilities, CAP_SYS_NICE)) return ok(found);
  return warning(
    `${found}: processes of other users cannot be moved, and no thread gets a real-time class`,
    'run as root, or with AmbientCapabilities=CAP_SYS_NICE (systemd), --cap-add SYS_NICE (containers)',
  );
}

function allowedCpus({ online, allowed, unbalanced }: MachineFacts): Verdict {
  // Those that the kernel isolates are in no mask at first, and are granted all the same.
  const kept = online.difference(allowed).difference(unbalanced);
  if (kept.isEmpty) return ok(`${allowed}`);
  return warning(
    `${allowed} of ${online}: what is started from here gets no grant of ${cpusText(kept)}`,
    'a wider mask or cpuset: taskset -pc, AllowedCPUs= (systemd), --cpuset-cpus (containers)',
  );
}

function seccomp({ seccomp }: MachineFacts): Verdict {
  if (seccomp === null) return unknown('the kernel does not tell');
  if (seccomp === 0) return ok('none');
  return ok('a filter is in force; whether it denies what numalign needs is judged by memory-policy');
}

function memoryPolicy({ memoryPolicyRefusal, seccomp, numaNodes }: MachineFacts): Verdict {
  if (memoryPolicyRefusal === undefined) return ok('can be read and set for own threads');
  const found = `refused with ${memoryPolicyRefusal}: memory is booked, but not bound to NUMA nodes`;
  if (numaNodes === 1) return ok(`${found}; there is only one`);
  if (memoryPolicyRefusal === 'ENOSYS') return warning(found, 'a kernel with CONFIG_NUMA');
  const filter = seccomp === 0 ? 'the security module' : "the container's seccomp profile";
  return warning(found, `have ${filter} allow get_mempolicy, set_mempolicy, mbind and move_pages, or add CAP_SYS_NICE`);
}

function cgroups({ cgroups }: MachineFacts): Verdict {
  if (typeof cgroups === 'string') {
    return warning(cgroups, 'mount cgroup v2 at /sys/fs/cgroup, or choose --cgroup-root; until then masks must do');
  }
  const { version, rootPath, isUsed, whyNotWritable } = cgroups;
  if (whyNotWritable !== undefined) {
    return warning(
      `v${version}, not for this user: ${whyNotWritable}`,
      'run as root; or in a systemd unit with Delegate=cpuset and DelegateSubgroup=, and --cgroup-root below it',
    );
  }
  const found = `v${version}, ${rootPath} can be used`;
  return isUsed ? ok(found) : warning(`${found}, but is not`, 'numalign configure --cgroup-root, with its path');
}

/** The strongest level of a grant made here. */
function enforcement({ cgroups, user, capabilities }: MachineFacts): Verdict {
  if (typeof cgroups === 'string' || !isUsable(cgroups)) {
    const movesOthers = user === 0 || (capabilities !== null && has(capabilities, CAP_SYS_NICE));
    return warning(
      `members: ${movesOthers ? 'shared members' : 'shared members of this user'} are kept off by their masks, nobody else is`,
      'by the advice of cgroups',
    );
  }
  if (cgroups.version === 1) {
    return warning(
      'cpuset: shared members are kept off by cgroups; cgroup v1 has no partitions',
      'boot with cgroup v2 (systemd.unified_cgroup_hierarchy=1): then the kernel keeps everybody off',
    );
  }
  if (cgroups.whyNoPartition !== undefined) {
    return warning(
      `cpuset: shared members are kept off by cgroups; no partition: ${cgroups.whyNoPartition}`,
      'a cgroup root directly below the root of the machine, such as /numalign, as root',
    );
  }
  return ok('partition, or isolated on request: the kernel keeps everybody off');
}

const isUsable = ({ isUsed, whyNotWritable }: CgroupFacts) => isUsed && whyNotWritable === undefined;

function cpuQuota({ limits, allowed }: MachineFacts): Verdict {
  if (limits === null) return unknown('the cgroups of this process cannot be read');
  const { cpuMax } = limits;
  if (cpuMax === null) return ok('none at or above this process');
  const times = cpuMax.throttled?.nrThrottled ?? 0;
  const found = `${cpuMax.path} may use ${cpuMax.cpus} CPUs at a time, and was throttled ${times} times`;
  const advice = `lift it (CPUQuota= of systemd, --cpus of containers, cpuCFSQuota of the kubelet), or ask for at most ${Math.floor(cpuMax.cpus)} CPUs`;
  if (times > 0) return problem(`${found}: its threads stand still, on granted CPUs too`, advice);
  return cpuMax.cpus >= allowed.size ? ok(found) : warning(found, advice);
}

const CONTAINER = /(^|\/)(docker|libpod|crio|cri-containerd|nerdctl)[-/]|\/lxc\//;

function kindOf(path: string): string {
  if (path.includes('kubepods')) return 'a pod';
  if (CONTAINER.test(path)) return 'a container';
  return /\.(slice|service|scope)$/.test(path) ? 'AllowedCPUs= of systemd' : 'a cgroup';
}

function cpusets({ foreignCpusets, candidates }: MachineFacts): Verdict {
  if (foreignCpusets === null) return unknown('no cgroups with cpusets can be seen from here');
  const near = foreignCpusets.cpusets.filter(({ cpus }) => cpus.intersects(candidates));
  const text = ({ path, cpus, isPartition }: ForeignCpuset) =>
    `${path} (${isPartition ? 'a partition' : kindOf(path)}) has ${cpus}`;
  const partitions = near.filter(({ isPartition }) => isPartition);
  if (partitions.length > 0) {
    return problem(
      `the kernel keeps numalign off: ${listSome(partitions, text)}`,
      'numalign configure --managed with the other CPUs, or end these partitions',
    );
  }
  if (near.length > 0) {
    return warning(
      `others were given CPUs that numalign hands out: ${listSome(near, text)}`,
      'numalign configure --managed with other CPUs; or have them leave: numalign share PATH. CPUs that a cgroup beside it names become no partition',
    );
  }
  const found = 'no other cgroup was given CPUs that numalign hands out';
  return foreignCpusets.isComplete ? ok(found) : unknown(`${found}, as far as was looked: there are very many`);
}

function smt({ cpusPerCore }: MachineFacts): Verdict {
  if (cpusPerCore < 2) return ok('off: a CPU is a core');
  return warning(
    `on, ${cpusPerCore} CPUs a core: whoever is on the other CPU of a core slows a granted one down`,
    'ask for whole cores (full-pcpus-only), or --smt hold-sibling',
  );
}

function isolatedCpus({ unbalanced, tickless }: MachineFacts): Verdict {
  const balanced = tickless.difference(unbalanced);
  const ticking = unbalanced.difference(tickless);
  if (unbalanced.isEmpty && tickless.isEmpty) return ok('none: load is balanced over all CPUs');
  if (!balanced.isEmpty) {
    return warning(
      `${cpusText(balanced)} have no tick (nohz_full), but load is balanced over them: a second thread there brings the tick back`,
      `boot with isolcpus=${balanced} too, or grant them at the level isolated`,
    );
  }
  if (!ticking.isEmpty) {
    return warning(
      `${unbalanced} (isolcpus or isolated partitions); ${cpusText(ticking)} of them still have the timer's tick`,
      `boot with nohz_full=${ticking} rcu_nocbs=${ticking}, where threads spin there`,
    );
  }
  return ok(`${unbalanced}, without the tick`);
}

function governors({ governors, candidates }: MachineFacts): Verdict {
  if (governors === null) return unknown('no cpufreq here: the firmware or the host of this machine decides');
  const slow = governors.filter(({ governor, cpus }) => governor !== 'performance' && cpus.intersects(candidates));
  if (slow.length === 0) return ok('performance');
  const names = [...new Set(slow.map(({ governor }) => governor))];
  const cpusOf = (name: string) =>
    slow.filter(({ governor }) => governor === name).reduce((all, { cpus }) => all.union(cpus), CpuSet.EMPTY);
  const found = names.map((name) => `${name} on ${cpusText(cpusOf(name))}`).join(', ');
  return warning(`${found}: a CPU that was idle starts slowly`, 'cpupower frequency-set -g performance');
}

// Such work can only go to CPUs that are nobody's.
function moveAway({ online, candidates }: MachineFacts, how: (cpus: string) => string): string {
  const others = online.difference(candidates);
  if (!others.isEmpty) return how(String(others));
  return `keep some CPUs for such work (numalign configure --reserved LIST), then ${how('LIST')}`;
}

function interrupts(facts: MachineFacts): Verdict {
  const { interrupts, candidates } = facts;
  if (interrupts === null) return unknown('/proc/interrupts cannot be read');
  const countOf = ({ counts }: InterruptFacts) =>
    [...counts].reduce((sum, [cpu, count]) => (candidates.has(cpu) ? sum + count : sum), 0);
  const near = interrupts
    .filter(({ cpus }) => cpus.intersects(candidates))
    .map((interrupt) => ({ ...interrupt, count: countOf(interrupt) }))
    .filter(({ count }) => count > 0)
    .sort((a, b) => b.count - a.count);
  if (near.length === 0) return ok(`none of a device on ${cpusText(candidates)}`);
  const named = listSome(near, ({ irq, name, count }) => `${irq} ${name} (${count} times)`);
  return warning(
    `${near.length} of devices come to CPUs that numalign hands out: ${named}`,
    `${moveAway(facts, (cpus) => `write ${cpus} to /proc/irq/N/smp_affinity_list`)}; where that is refused, boot with isolcpus=managed_irq,LIST`,
  );
}

function workqueues(facts: MachineFacts): Verdict {
  const { workqueues, candidates } = facts;
  if (workqueues === null) return unknown('their mask cannot be read');
  const near = workqueues.intersection(candidates);
  if (near.isEmpty) return ok(`kept to ${cpusText(workqueues)}`);
  return warning(
    `work that belongs to no CPU is done on ${cpusText(near)} too`,
    moveAway(facts, (cpus) => `write the mask of ${cpus} to /sys/devices/virtual/workqueue/cpumask`),
  );
}

function numaBalancing({ numaBalancing, numaNodes }: MachineFacts): Verdict {
  if (numaNodes === 1) return ok('there is one NUMA node: nothing to balance');
  if (numaBalancing === null) return unknown('the kernel does not tell');
  if (numaBalancing === 0) return ok('off');
  return warning(
    'on: the kernel unmaps pages to see who uses them, and moves them and their threads',
    'sysctl -w kernel.numa_balancing=0',
  );
}

function hugepages({ hugepages }: MachineFacts): Verdict {
  if (hugepages.length === 0) return ok('the kernel has none');
  const text = hugepages.map(({ bytes, total, free }) =>
    total === 0
      ? `none of ${formatBytes(bytes)}`
      : `${free ?? 'an unknown number'} of ${total} of ${formatBytes(bytes)} free`,
  );
  return ok(text.join(', '));
}

function kubelet(facts: MachineFacts): Verdict {
  const { kubelet, managed, online, stateFolder, seesAllProcesses } = facts;
  if (kubelet.found.length === 0) {
    return seesAllProcesses
      ? ok('none was found')
      : unknown('none was found, but not every process can be seen from here');
  }
  const found = `one was found: ${kubelet.found.join(', ')}`;
  const conflict = kubeletConflict(kubelet, managed, online);
  if (!conflict) return ok(`${found}; CPUs ${managed} are left to numalign`);
  const text = `${found}; it may give CPUs ${managed} to others`;
  const advice = conflict.ways.join('; or ');
  // A folder of one's own speaks for nobody else, and nothing is refused.
  return stateFolder.scope === 'machine' ? problem(text, advice) : warning(text, advice);
}

function movers({ movers, seesAllProcesses }: MachineFacts): Verdict {
  if (movers.length > 0) {
    return warning(
      `${listSome(movers, ({ name, pid }) => `${name} (process ${pid})`)}: it moves interrupts or processes onto granted CPUs`,
      'irqbalance: IRQBALANCE_BANNED_CPULIST with the granted CPUs, or systemctl stop irqbalance; numad: systemctl stop numad',
    );
  }
  return seesAllProcesses
    ? ok('neither irqbalance nor numad runs')
    : unknown('neither irqbalance nor numad was found, but not every process can be seen from here');
}
