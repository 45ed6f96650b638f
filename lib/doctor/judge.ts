// Judges a machine by its facts: what numalign can and cannot do there, and what to change. Pure.
import { dirname } from 'node:path';
import { shellWord } from '../base/shell-word.js';
import { formatBytes } from '../input/quantity.js';
import { kubeletConflict } from '../kubelet/kubelet-conflict.js';
import { CpuSet, cpusNamed } from '../machine/cpu-set.js';
import { mendText } from '../state/machine-group.js';
import { cpuMask } from './cpu-mask.js';
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
  cgroups: { cgroups, delegation, enforcement, 'cpu-quota': cpuQuota, cpusets },
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

function stateFolder({
  stateFolder: { path, scope, exists, fileSystem, refusal, notTheGroups },
}: MachineFacts): Verdict {
  const mend = `as root \`${mendText(path)}\``;
  if (refusal !== undefined) {
    const other =
      '`--state-dir DIR` uses a folder of your own, of which the rest of the machine knows nothing';
    const make = `\`groupadd -rf numalign && install -d -m 2770 -g numalign ${shellWord(path)}\``;
    const join = '`usermod -aG numalign USER` for each of its users, who log in anew';
    if (notTheGroups !== undefined) return problem(refusal, `${mend}, and once ${join}; or ${other}`);
    const advice =
      scope === 'machine' ? `as root, at each boot, ${make}, and once ${join}; or ${other}` : other;
    return problem(refusal, advice);
  }
  const where = `${path} (${scope}, ${fileSystem ?? 'unknown file system'})`;
  const found = exists ? `${where} can be written` : `${where} is not there yet and can be made`;
  if (notTheGroups !== undefined) {
    return warning(`${found}, but not by members of its group: ${notTheGroups} belongs to another`, mend);
  }
  if (fileSystem === 'overlay' && scope === 'machine') {
    return warning(`${found}, but is this container's own`, `mount the machine's ${path} into the container`);
  }
  if (fileSystem !== null && /^(nfs|cifs|smb|9p|ceph|fuse)/.test(fileSystem)) {
    return warning(
      `${found}; whether its locks hold is up to a server`,
      'a folder on a file system of this machine',
    );
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
    'run as root, or with `AmbientCapabilities=CAP_SYS_NICE` (systemd), `--cap-add SYS_NICE` (containers)',
  );
}

function allowedCpus({ online, allowed, unbalanced }: MachineFacts): Verdict {
  // Those that the kernel isolates are in no mask at first, and are granted all the same.
  const kept = online.difference(allowed).difference(unbalanced);
  if (kept.isEmpty) return ok(`${allowed}`);
  return warning(
    `${allowed} of ${online}: what is started from here gets no grant of ${cpusNamed(kept)}`,
    `a wider mask or cpuset: \`taskset -pc ${online} $$\` in this shell, \`AllowedCPUs=\` (systemd), \`--cpuset-cpus\` (containers)`,
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
  return warning(
    found,
    `have ${filter} allow get_mempolicy, set_mempolicy, mbind and move_pages, or add CAP_SYS_NICE`,
  );
}

function cgroups(facts: MachineFacts): Verdict {
  const { cgroups } = facts;
  if (typeof cgroups === 'string') {
    return warning(
      cgroups,
      'mount cgroup v2 at /sys/fs/cgroup, or choose `--cgroup-root`; until then masks must do',
    );
  }
  const { version, root, rootPath, isUsed, whyNotWritable, delegated } = cgroups;
  if (whyNotWritable !== undefined) {
    const other =
      delegated === undefined ? 'a cgroup that is delegated' : `\`--cgroup-root ${shellWord(delegated)}\``;
    return warning(`v${version}, not for this user: ${whyNotWritable}`, `run as root, or with ${other}`);
  }
  const found = `v${version}, ${rootPath} can be used`;
  return isUsed
    ? ok(found)
    : warning(`${found}, but is not`, command(facts, `configure --cgroup-root ${shellWord(root)}`));
}

function delegation({ cgroups }: MachineFacts): Verdict {
  if (typeof cgroups === 'string') return unknown('no cgroups can be seen from here');
  const { version, root, whyNotWritable, own, delegated } = cgroups;
  if (whyNotWritable === undefined) return ok(`not needed: this user may use ${root}`);
  if (delegated !== undefined) return ok(`this user may make cgroups below ${dirname(delegated)}`);
  if (own === undefined) return unknown('the cgroup of this process cannot be seen from here');
  const found = `neither ${own} nor a cgroup above it is delegated to this user`;
  if (version === 1) {
    return warning(
      found,
      'as root, make a cgroup that this user owns (`chown -R`), and give `--cgroup-root` below it',
    );
  }
  const unit = '`Delegate=cpuset` and `DelegateSubgroup=main`';
  return warning(
    found,
    `start from a systemd unit with ${unit}, and give \`--cgroup-root\` below the unit's cgroup`,
  );
}

/** The strongest level of a grant made here. */
function enforcement(facts: MachineFacts): Verdict {
  const { cgroups, user, capabilities } = facts;
  if (typeof cgroups === 'string' || !isUsable(cgroups)) {
    const movesOthers = capabilities === null ? user === 0 : has(capabilities, CAP_SYS_NICE);
    return warning(
      `members: ${movesOthers ? 'shared members' : 'shared members of this user'} are kept off by their masks, nobody else is`,
      'as the check of cgroups says',
    );
  }
  if (cgroups.version === 1) {
    return warning(
      'cpuset for shared members that are in no cgroup of somebody else, members for others; cgroup v1 has no partitions',
      'boot with cgroup v2 (`systemd.unified_cgroup_hierarchy=1`): then the kernel keeps everybody off',
    );
  }
  if (cgroups.whyNoPartition !== undefined) {
    return warning(
      `cpuset for shared members in cgroups below ${cgroups.rootPath}, members for others; no partition: ${cgroups.whyNoPartition}`,
      `as root \`--cgroup-root /numalign\`, directly below the root of the machine; or put what is to be kept off into a cgroup below ${cgroups.rootPath}, and ${command(facts, 'share PATH')} with its folder`,
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
  const lift = 'lift it (`CPUQuota=` of systemd, `--cpus` of containers, `cpuCFSQuota` of the kubelet)';
  const whole = Math.floor(cpuMax.cpus);
  // A grant has one CPU at least.
  const advice = whole < 1 ? lift : `${lift}, or ask for at most ${whole} CPU${whole === 1 ? '' : 's'}`;
  if (times > 0) return problem(`${found}: its threads stand still, on granted CPUs too`, advice);
  return cpuMax.cpus >= allowed.size ? ok(found) : warning(found, advice);
}

const CONTAINER = /(^|\/)(docker|libpod|crio|cri-containerd|nerdctl)[-/]|\/lxc\//;

function kindOf(path: string): string {
  if (path.includes('kubepods')) return 'a pod';
  if (CONTAINER.test(path)) return 'a container';
  return /\.(slice|service|scope)$/.test(path) ? 'AllowedCPUs= of systemd' : 'a cgroup';
}

function cpusets(facts: MachineFacts): Verdict {
  const { foreignCpusets, candidates, managed } = facts;
  if (foreignCpusets === null) return unknown('no cgroups with cpusets can be seen from here');
  const near = foreignCpusets.cpusets.filter(({ cpus }) => cpus.intersects(candidates));
  const text = ({ path, cpus, isPartition }: ForeignCpuset) =>
    `${path} (${isPartition ? 'a partition' : kindOf(path)}) has ${cpus}`;
  const partitions = near.filter(({ isPartition }) => isPartition);
  const without = (cpusets: readonly ForeignCpuset[]) => {
    const left = managed.difference(cpusets.reduce((all, { cpus }) => all.union(cpus), CpuSet.EMPTY));
    // One CPU stays shared: a single one could never be granted.
    const isOfUse = left.size > 1 && left.intersects(candidates);
    return isOfUse ? [command(facts, `configure --managed ${left}`)] : [];
  };
  if (partitions.length > 0) {
    const ways = [
      ...without(partitions),
      ...partitions.slice(0, MOST_NAMED).map((one) => endPartition(foreignCpusets.mount, one)),
    ];
    return problem(`the kernel keeps numalign off: ${listSome(partitions, text)}`, ways.join(', or '));
  }
  if (near.length > 0) {
    const leave = `have them leave, ${command(facts, 'share PATH')} with the folder of each; CPUs that a cgroup beside it names become no partition`;
    return warning(
      `others were given CPUs that numalign hands out: ${listSome(near, text)}`,
      [...without(near), leave].join(', or '),
    );
  }
  const found = 'no other cgroup was given CPUs that numalign hands out';
  return foreignCpusets.isComplete
    ? ok(found)
    : unknown(`${found}, as far as was looked: there are very many`);
}

const endPartition = (mount: string, { path }: ForeignCpuset) =>
  `\`echo member > ${shellWord(`${mount}${path}/cpuset.cpus.partition`)}\``;

function smt({ cpusPerCore }: MachineFacts): Verdict {
  if (cpusPerCore < 2) return ok('off: a CPU is a core');
  return warning(
    `on, ${cpusPerCore} CPUs a core: whoever is on the other CPU of a core slows a granted one down`,
    'ask for whole cores (`--cpu-option full-pcpus-only`), or `--smt hold-sibling`',
  );
}

function isolatedCpus({ unbalanced, tickless }: MachineFacts): Verdict {
  const balanced = tickless.difference(unbalanced);
  const ticking = unbalanced.difference(tickless);
  if (unbalanced.isEmpty && tickless.isEmpty) return ok('none: load is balanced over all CPUs');
  if (!balanced.isEmpty) {
    return warning(
      `${cpusNamed(balanced)} have no tick (nohz_full), but load is balanced over them: a second thread there brings the tick back`,
      `boot with \`isolcpus=${balanced}\` too, or grant them at the level isolated`,
    );
  }
  if (!ticking.isEmpty) {
    return warning(
      `${unbalanced} (isolcpus or isolated partitions); ${cpusNamed(ticking)} of them still have the timer's tick`,
      `boot with \`nohz_full=${ticking} rcu_nocbs=${ticking}\`, where threads spin there`,
    );
  }
  return ok(`${unbalanced}, without the tick`);
}

function governors({ governors, candidates }: MachineFacts): Verdict {
  if (governors === null) return unknown('no cpufreq here: the firmware or the host of this machine decides');
  const slow = governors.filter(
    ({ governor, cpus }) => governor !== 'performance' && cpus.intersects(candidates),
  );
  if (slow.length === 0) return ok('performance');
  const names = [...new Set(slow.map(({ governor }) => governor))];
  const cpusOf = (name: string) =>
    slow.filter(({ governor }) => governor === name).reduce((all, { cpus }) => all.union(cpus), CpuSet.EMPTY);
  const found = names.map((name) => `${name} on ${cpusNamed(cpusOf(name))}`).join(', ');
  return warning(`${found}: a CPU that was idle starts slowly`, '`cpupower frequency-set -g performance`');
}

/** As it is typed for the same state folder. */
function command({ stateFolder: { path, scope } }: MachineFacts, words: string): string {
  return `\`numalign ${words}${scope === 'machine' ? '' : ` --state-dir ${shellWord(path)}`}\``;
}

// Such work can only go to CPUs that are nobody's.
function moveAway(facts: MachineFacts, how: (cpus: CpuSet) => string): string {
  const { online, candidates, firstCore } = facts;
  const others = online.difference(candidates);
  if (!others.isEmpty) return how(others);
  const rest = candidates.difference(firstCore);
  if (rest.isEmpty) return `there is no CPU to spare for such work: all of ${candidates} would be reserved`;
  return `keep CPUs for such work, ${command(facts, `configure --reserved ${firstCore}`)}; then ${how(firstCore)}`;
}

function interrupts(facts: MachineFacts): Verdict {
  const { interrupts, candidates, online } = facts;
  if (interrupts === null) return unknown('/proc/interrupts cannot be read');
  const countOf = ({ counts }: InterruptFacts) =>
    [...counts].reduce((sum, [cpu, count]) => (candidates.has(cpu) ? sum + count : sum), 0);
  const near = interrupts
    .filter(({ cpus }) => cpus.intersects(candidates))
    .map((interrupt) => ({ ...interrupt, count: countOf(interrupt) }))
    .filter(({ count }) => count > 0)
    .sort((a, b) => b.count - a.count);
  if (near.length === 0) return ok(`none of a device on ${cpusNamed(candidates)}`);
  const named = listSome(near, ({ irq, name, count }) => `${irq} ${name} (${count} times)`);
  return warning(
    `${near.length} device interrupt${near.length === 1 ? ' arrives' : 's arrive'} on CPUs that numalign hands out: ${named}`,
    moveAway(
      facts,
      (cpus) =>
        `\`for i in /proc/irq/[0-9]*; do echo ${cpus} > $i/smp_affinity_list; done\`; where that is refused, boot with \`isolcpus=managed_irq,${online.difference(cpus)}\``,
    ),
  );
}

function workqueues(facts: MachineFacts): Verdict {
  const { workqueues, candidates } = facts;
  if (workqueues === null) return unknown('their mask cannot be read');
  const near = workqueues.intersection(candidates);
  if (near.isEmpty) return ok(`kept to ${cpusNamed(workqueues)}`);
  return warning(
    `work that belongs to no CPU is done on ${cpusNamed(near)} too`,
    moveAway(facts, (cpus) => `\`echo ${cpuMask(cpus)} > /sys/devices/virtual/workqueue/cpumask\``),
  );
}

function numaBalancing({ numaBalancing, numaNodes }: MachineFacts): Verdict {
  if (numaNodes === 1) return ok('there is one NUMA node: nothing to balance');
  if (numaBalancing === null) return unknown('the kernel does not tell');
  if (numaBalancing === 0) return ok('off');
  return warning(
    'on: the kernel unmaps pages to see who uses them, and moves them and their threads',
    '`sysctl -w kernel.numa_balancing=0`',
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

const STOPS: Readonly<Record<string, (candidates: CpuSet) => string>> = {
  irqbalance: (cpus) =>
    `\`IRQBALANCE_BANNED_CPULIST=${cpus}\` in its environment, or \`systemctl stop irqbalance\``,
  numad: () => '`systemctl stop numad`',
};

function movers({ movers, seesAllProcesses, candidates }: MachineFacts): Verdict {
  if (movers.length > 0) {
    const stops = [...new Set(movers.map(({ name }) => name))].map(
      (name) => `${name}: ${STOPS[name]!(candidates)}`,
    );
    return warning(
      `${listSome(movers, ({ name, pid }) => `${name} (process ${pid})`)}: it moves interrupts or processes onto granted CPUs`,
      stops.join('; '),
    );
  }
  return seesAllProcesses
    ? ok('neither irqbalance nor numad runs')
    : unknown('neither irqbalance nor numad was found, but not every process can be seen from here');
}
