// needs: nothing
import { describe, expect, it } from 'vitest';
import type { CgroupFacts, InterruptFacts, MachineFacts } from '../../lib/doctor/facts.js';
import type { FindingStatus } from '../../lib/doctor/finding.js';
import { judge } from '../../lib/doctor/judge.js';
import type { KubeletStatus } from '../../lib/entries/kubelet.js';
import { CpuSet } from '../../lib/machine/cpu-set.js';

const cpus = CpuSet.parse;
const ALL_CAPABILITIES = (1n << 41n) - 1n;

const CGROUPS: CgroupFacts = {
  version: 2,
  root: '/numalign',
  rootPath: '/sys/fs/cgroup/numalign',
  isUsed: true,
  rootRefusal: undefined,
  whyNotWritable: undefined,
  whyNoPartition: undefined,
  own: '/user.slice/a.scope',
  delegated: undefined,
};
const CLOSED: CgroupFacts = { ...CGROUPS, whyNotWritable: 'EACCES: open cgroup.procs' };
const REFUSED: CgroupFacts = {
  ...CGROUPS,
  rootRefusal: { why: "another is root's choice", advice: 'choose again' },
};

const RECORD: KubeletStatus = {
  pods: [{ uid: null, namespace: 'default', name: 'web', containers: [] }],
  cpus: cpus('6-7'),
  keeper: { pid: 12, command: 'numalign-node', alive: true },
  since: 'before',
  updatedAt: 'then',
};

// Root on a machine that is set up for grants: CPUs 0-1 are kept for everything else.
const READY: MachineFacts = {
  online: cpus('0-7'),
  managed: cpus('0-7'),
  candidates: cpus('2-7'),
  firstCore: cpus('2'),
  allowed: cpus('0-7'),
  limit: cpus('0-7'),
  maskOrigin: 'wide',
  numaNodes: 2,
  cpusPerCore: [1],
  coreKinds: [{ name: 'performance', cpus: cpus('0-7'), free: cpus('2-7') }],
  reserved: cpus('0-1'),
  reservable: cpus('0-1'),
  user: 0,
  capabilities: ALL_CAPABILITIES,
  seccomp: 0,
  memoryPolicyRefusal: undefined,
  stateFolder: {
    path: '/run/numalign',
    scope: 'machine',
    exists: true,
    fileSystem: 'tmpfs',
    refusal: undefined,
    notTheGroups: undefined,
  },
  cgroups: CGROUPS,
  limits: { cpuMax: null, memoryMax: null },
  foreignCpusets: { mount: '/sys/fs/cgroup', cpusets: [], isComplete: true },
  kubelet: {
    found: [],
    cpu: undefined,
    pod: undefined,
    isInContainer: false,
    allowed: cpus('0-7'),
    cpuLimit: undefined,
  },
  kubeletRecord: null,
  movers: [],
  seesAllProcesses: true,
  unbalanced: CpuSet.EMPTY,
  tickless: CpuSet.EMPTY,
  governors: [{ cpus: cpus('0-7'), governor: 'performance' }],
  idleLatency: 2,
  interrupts: [],
  workqueues: cpus('0-1'),
  steering: [],
  kernelSettings: {
    ...{ tickless: cpus('2-7'), offloaded: cpus('2-7'), hugepages: 'madvise', compaction: 'madvise' },
  },
  numaBalancing: 0,
  hugepages: [{ bytes: 2 ** 21, total: 128, free: 64 }],
};

const finding = (check: string, facts: Partial<MachineFacts>) =>
  judge({ ...READY, ...facts }).find((one) => one.check === check)!;

const interrupt = (irq: number, list: string, counts: Record<number, number>): InterruptFacts => ({
  irq,
  name: `queue-${irq}`,
  cpus: cpus(list),
  counts: new Map(Object.entries(counts).map(([cpu, count]) => [Number(cpu), count])),
});

const HYBRID: Partial<MachineFacts> = {
  coreKinds: [
    { name: 'performance', cpus: cpus('0-3'), free: cpus('1-3') },
    { name: 'efficiency', cpus: cpus('4-5'), free: CpuSet.EMPTY },
    { name: 'efficiency', cpus: cpus('6-7'), free: null },
  ],
  reserved: CpuSet.EMPTY,
  reservable: CpuSet.EMPTY,
};

type Case = [what: string, check: string, facts: Partial<MachineFacts>, status: FindingStatus, text: RegExp];

describe('the doctor', () => {
  it('has no advice for a machine that is set up for grants', () => {
    const findings = judge(READY);
    expect(findings.filter(({ status, advice }) => status !== 'ok' || advice !== null)).toEqual([]);
    expect(new Set(findings.map(({ check }) => check)).size).toBe(findings.length);
  });

  it.each<Case>([
    [
      'a state folder that cannot be used, and how root makes it',
      'state-folder',
      { stateFolder: { ...READY.stateFolder, exists: false, refusal: 'it cannot be made: EACCES' } },
      'problem',
      /EACCES.*install -d -m 2770 -g numalign \/run\/numalign.*--state-dir/s,
    ],
    [
      "a machine's folder that was made before its group, for a member",
      'state-folder',
      { stateFolder: { ...READY.stateFolder, refusal: 'closed', notTheGroups: '/run/numalign/lock' } },
      'problem',
      /^closed\nas root `chgrp -R numalign \/run\/numalign && chmod 2770 \/run\/numalign`.*usermod/s,
    ],
    [
      "a machine's folder that was made before its group, for root",
      'state-folder',
      { stateFolder: { ...READY.stateFolder, notTheGroups: '/run/numalign/lock' } },
      'warning',
      /not by members of its group: \/run\/numalign\/lock belongs to another\nas root `chgrp -R numalign/,
    ],
    [
      "a machine's folder with a blank in its path, made before its group",
      'state-folder',
      { stateFolder: { ...READY.stateFolder, path: '/srv/my state', notTheGroups: '/srv/my state/lock' } },
      'warning',
      /as root `chgrp -R numalign '\/srv\/my state' && chmod 2770 '\/srv\/my state'`$/,
    ],
    [
      'a state folder that is not there and can be made',
      'state-folder',
      { stateFolder: { ...READY.stateFolder, exists: false } },
      'ok',
      /not there yet and can be made/,
    ],
    [
      "a machine's folder that is in a container's own layer",
      'state-folder',
      { stateFolder: { ...READY.stateFolder, fileSystem: 'overlay' } },
      'warning',
      /this container's own.*mount the machine's \/run\/numalign/s,
    ],
    [
      'a state folder of a server',
      'state-folder',
      { stateFolder: { ...READY.stateFolder, fileSystem: 'nfs4', scope: 'private' } },
      'warning',
      /locks/,
    ],
    [
      'an ordinary user, who cannot move others',
      'capabilities',
      { user: 1000, capabilities: 0n },
      'warning',
      /^user 1000, with neither CAP_SYS_NICE nor CAP_SYS_ADMIN.*AmbientCapabilities/s,
    ],
    [
      'an ordinary user with CAP_SYS_NICE alone',
      'capabilities',
      { user: 1000, capabilities: 1n << 23n },
      'ok',
      /^user 1000, with CAP_SYS_NICE$/m,
    ],
    ['capabilities that cannot be read', 'capabilities', { capabilities: null }, 'unknown', /cannot be read/],
    [
      'CPUs that a cpuset keeps',
      'allowed-cpus',
      { allowed: cpus('0-3'), limit: cpus('0-3') },
      'warning',
      /cpuset of this process has no CPUs 4-7/,
    ],
    [
      'a mask that was chosen',
      'allowed-cpus',
      { allowed: cpus('0-3'), maskOrigin: 'chosen' },
      'warning',
      /^0-3 of 0-7: the mask of this shell.*--ignore-mask/s,
    ],
    [
      'a mask from numalign, which is no wish',
      'allowed-cpus',
      { allowed: cpus('0-3'), maskOrigin: 'numalign' },
      'ok',
      /^0-7$/m,
    ],
    [
      'CPUs that only the kernel isolates, which are granted all the same',
      'allowed-cpus',
      { allowed: cpus('0-3'), limit: cpus('0-3'), unbalanced: cpus('4-7') },
      'ok',
      /0-3/,
    ],
    ['a seccomp filter', 'seccomp', { seccomp: 2 }, 'ok', /filter is in force/],
    ['a kernel without seccomp', 'seccomp', { seccomp: null }, 'unknown', /does not report it/],
    [
      'a filter that denies memory policies',
      'memory-policy',
      { seccomp: 2, memoryPolicyRefusal: 'EPERM' },
      'warning',
      /EPERM.*seccomp profile allow get_mempolicy/s,
    ],
    [
      'denied memory policies where there is one NUMA node',
      'memory-policy',
      { memoryPolicyRefusal: 'EPERM', numaNodes: 1 },
      'ok',
      /only one/,
    ],
    [
      'a machine without cpusets',
      'cgroups',
      { cgroups: 'no cgroup hierarchy' },
      'warning',
      /no cgroup hierarchy/,
    ],
    [
      'cgroups that are closed to this user',
      'cgroups',
      { cgroups: CLOSED },
      'warning',
      /v2, not for this user: EACCES.*run as root, or with a cgroup that is delegated/s,
    ],
    [
      'cgroups that are closed to this user, and others that are open',
      'cgroups',
      { cgroups: { ...CLOSED, delegated: '/user.slice/a.service/numalign' } },
      'warning',
      /or with `--cgroup-root \/user.slice\/a.service\/numalign`$/,
    ],
    [
      'the same where systemd has escaped the name',
      'cgroups',
      { cgroups: { ...CLOSED, delegated: '/user@1.service/a\\x2db.service/numalign' } },
      'warning',
      /or with `--cgroup-root '\/user@1.service\/a\\x2db.service\/numalign'`$/,
    ],
    [
      'a cgroup root on record that root has not chosen',
      'cgroups',
      { cgroups: REFUSED },
      'warning',
      /v2, not for root: another is root's choice\nchoose again$/,
    ],
    [
      'masks only, where root has not chosen the cgroup root on record',
      'enforcement',
      { cgroups: REFUSED },
      'warning',
      /^members: .*see the check of cgroups$/s,
    ],
    [
      'cgroups that are not used by default, with a name that a shell would change',
      'cgroups',
      { cgroups: { ...CGROUPS, root: "/it's;cmd", isUsed: false } },
      'warning',
      /\n`numalign configure --cgroup-root '\/it'\\''s;cmd'`$/,
    ],
    [
      'that nothing need be delegated to root',
      'delegation',
      {},
      'ok',
      /not needed: this user may use \/numalign/,
    ],
    [
      'what is delegated',
      'delegation',
      { cgroups: { ...CLOSED, delegated: '/user.slice/a.service/numalign' } },
      'ok',
      /below \/user.slice\/a.service$/m,
    ],
    [
      'that nothing is delegated',
      'delegation',
      { cgroups: CLOSED },
      'warning',
      /neither \/user.slice\/a.scope nor a cgroup above.*`Delegate=cpuset`/s,
    ],
    [
      'that nothing is delegated with cgroup v1',
      'delegation',
      { cgroups: { ...CLOSED, version: 1 } },
      'warning',
      /neither.*`chown -R`/s,
    ],
    [
      'that the own cgroup is out of sight',
      'delegation',
      { cgroups: { ...CLOSED, own: undefined } },
      'unknown',
      /cannot be seen/,
    ],
    ['that there is nothing to delegate', 'delegation', { cgroups: 'none' }, 'unknown', /no cgroups/],
    [
      'cgroups that are not used by default',
      'cgroups',
      { cgroups: { ...CGROUPS, isUsed: false } },
      'warning',
      /can be used, but is not\n`numalign configure --cgroup-root \/numalign`/,
    ],
    ['a partition', 'enforcement', {}, 'ok', /^partition/],
    [
      'why there is no partition',
      'enforcement',
      { cgroups: { ...CGROUPS, whyNoPartition: 'that above it is none' } },
      'warning',
      /^cpuset for shared members in cgroups below \S+, members for others.*that above it is none/,
    ],
    [
      'cgroup v1',
      'enforcement',
      { cgroups: { ...CGROUPS, version: 1 } },
      'warning',
      /^cpuset for shared members .*boot with cgroup v2/s,
    ],
    [
      'masks of all processes, as root without cgroups',
      'enforcement',
      { cgroups: 'none' },
      'warning',
      /^members: shared members are/,
    ],
    [
      'masks of own processes, as root without CAP_SYS_NICE and cgroups',
      'enforcement',
      { cgroups: 'none', capabilities: ALL_CAPABILITIES & ~(1n << 23n) },
      'warning',
      /^members: shared members of this user are/,
    ],
    [
      'masks of all processes, as root whose capabilities cannot be read',
      'enforcement',
      { cgroups: 'none', capabilities: null },
      'warning',
      /^members: shared members are/,
    ],
    [
      'masks of own processes, as a user without cgroups',
      'enforcement',
      { cgroups: { ...CGROUPS, whyNotWritable: 'EACCES' }, user: 1000, capabilities: 0n },
      'warning',
      /^members: shared members of this user are/,
    ],
    [
      'a quota that has throttled',
      'cpu-quota',
      { limits: limits(2, 17) },
      'problem',
      /\/sys\/fs\/cgroup\/a may use 2 CPUs at a time, and was throttled 17 times.*at most 2 CPUs/s,
    ],
    ['a quota below the CPUs', 'cpu-quota', { limits: limits(2.5, 0) }, 'warning', /at most 2 CPUs/],
    ['a quota of one CPU', 'cpu-quota', { limits: limits(1.5, 0) }, 'warning', /at most 1 CPU$/],
    [
      'a quota below one CPU, which none can be asked for with',
      'cpu-quota',
      { limits: limits(0.5, 0) },
      'warning',
      /\nlift it \([^)]*\)$/,
    ],
    ['a quota that cannot be reached', 'cpu-quota', { limits: limits(8, 0) }, 'ok', /8 CPUs/],
    ['a quota that cannot be seen', 'cpu-quota', { limits: null }, 'unknown', /cannot be read/],
    [
      "AllowedCPUs= of systemd, a container's and a pod's CPUs",
      'cpusets',
      {
        foreignCpusets: {
          mount: '/sys/fs/cgroup',
          cpusets: [
            { path: '/system.slice', cpus: cpus('0-3'), isPartition: false },
            { path: '/system.slice/docker-0a.scope', cpus: cpus('2'), isPartition: false },
            { path: '/kubepods.slice/kubepods-pod1.slice', cpus: cpus('4'), isPartition: false },
            { path: '/user.slice', cpus: cpus('0-1'), isPartition: false },
          ],
          isComplete: true,
        },
      },
      'warning',
      /: \/system.slice \(AllowedCPUs= of systemd\) has 0-3, \S+ \(a container\) has 2, \S+ \(a pod\) has 4\n`numalign configure --managed 5-7`, or have them leave, `numalign share PATH`/,
    ],
    [
      'a foreign partition',
      'cpusets',
      {
        foreignCpusets: {
          mount: '/sys/fs/cgroup',
          cpusets: [{ path: '/rt', cpus: cpus('6-7'), isPartition: true }],
          isComplete: true,
        },
      },
      'problem',
      /keeps numalign off: \/rt \(a partition\) has 6-7\n`numalign configure --managed 0-5`, or `echo member > \/sys\/fs\/cgroup\/rt\/cpuset.cpus.partition`$/,
    ],
    [
      'a foreign partition with cgroups mounted elsewhere, and a name that a shell would change',
      'cpusets',
      {
        foreignCpusets: {
          mount: '/sys/fs/cgroup/unified',
          cpusets: [{ path: '/foo\\x2dbar.slice', cpus: cpus('2-7'), isPartition: true }],
          isComplete: true,
        },
      },
      'problem',
      // All that would be left to manage is reserved.
      /has 2-7\n`echo member > '\/sys\/fs\/cgroup\/unified\/foo\\x2dbar\.slice\/cpuset\.cpus\.partition'`$/,
    ],
    [
      'a foreign partition beside which there is one CPU, which would stay shared',
      'cpusets',
      {
        ...{ online: cpus('0-1'), managed: cpus('0-1'), candidates: cpus('0-1'), firstCore: cpus('0') },
        foreignCpusets: {
          mount: '/sys/fs/cgroup',
          cpusets: [{ path: '/rt', cpus: cpus('1'), isPartition: true }],
          isComplete: true,
        },
      },
      'problem',
      /has 1\n`echo member > /,
    ],
    [
      'device interrupts on the only CPU',
      'interrupts',
      {
        ...{ online: cpus('0'), managed: cpus('0'), candidates: cpus('0'), firstCore: cpus('0') },
        interrupts: [{ irq: 9, name: 'nic', cpus: cpus('0'), counts: new Map([[0, 7]]) }],
      },
      'warning',
      /\nnumalign can do this .*`quiet: \{ interrupts: true \}`$/,
    ],
    [
      'more cgroups than are looked at',
      'cpusets',
      { foreignCpusets: { mount: '/sys/fs/cgroup', cpusets: [], isComplete: false } },
      'unknown',
      /too many cgroups/,
    ],
    ['no cpusets to be seen', 'cpusets', { foreignCpusets: null }, 'unknown', /no cgroups/],
    ['SMT', 'smt', { cpusPerCore: [2] }, 'warning', /^on, 2 CPUs per core.*--smt hold-sibling/s],
    [
      'kinds of cores',
      'core-kinds',
      HYBRID,
      'ok',
      /^performance cores 0-3 \(4 CPUs, 3 free\), efficiency cores 4-5 \(2 CPUs, none free\), efficiency cores 6-7 \(2 CPUs\); requests get the fastest/,
    ],
    [
      'cores of unknown kinds',
      'core-kinds',
      { cpusPerCore: [1, 2] },
      'unknown',
      /^cores have 1 or 2 CPUs \(some may be offline\), and Linux names no kinds: all count as alike\n$/,
    ],
    [
      'reserved CPUs on performance cores',
      'core-kinds',
      { ...HYBRID, reserved: cpus('0,7'), reservable: cpus('6-7') },
      'warning',
      /; CPU 0 of performance cores is reserved, and not granted\nreserve slower ones: `numalign configure --reserved 6-7`$/,
    ],
    [
      'more reserved CPUs than slower cores',
      'core-kinds',
      { ...HYBRID, reserved: cpus('0-4'), reservable: cpus('0-4') },
      'ok',
      /have room\n$/,
    ],
    ['SMT of some cores', 'smt', { cpusPerCore: [1, 2] }, 'warning', /^on, 1 or 2 CPUs per core/],
    [
      'CPUs that are to be granted and tick',
      'kernel-work',
      { kernelSettings: { ...READY.kernelSettings, tickless: cpus('6-7') } },
      'warning',
      /^the timer's tick interrupts CPUs 2-5\nboot with `nohz_full=2-5`, if threads spin there$/,
    ],
    [
      'tickless CPUs that are balanced',
      'isolated-cpus',
      { tickless: cpus('6') },
      'warning',
      /CPU 6 .*isolcpus=6/s,
    ],
    [
      'isolated CPUs',
      'isolated-cpus',
      { unbalanced: cpus('6-7'), tickless: cpus('6-7') },
      'ok',
      /^6-7 \(isolcpus or isolated partitions\)\n$/,
    ],
    [
      'other work of the kernel, if all CPUs may be granted except the shared ones',
      'kernel-work',
      {
        candidates: cpus('0-7'),
        firstCore: cpus('0'),
        kernelSettings: { tickless: null, offloaded: cpus(''), hugepages: 'always', compaction: 'always' },
      },
      'warning',
      /tick interrupts CPUs 1-7; RCU callbacks run on CPUs 1-7; khugepaged .*; a page fault .*CONFIG_NO_HZ_FULL.*rcu_nocbs=1-7.*echo madvise > .*echo defer\+madvise > /s,
    ],
    [
      'nothing of kernel work that cannot be seen',
      'kernel-work',
      {
        kernelSettings: {
          ...{ tickless: undefined, offloaded: undefined, hugepages: undefined, compaction: undefined },
        },
      },
      'ok',
      /^none that/,
    ],
    [
      'idle states that take long to leave',
      'idle-states',
      { idleLatency: 133 },
      'warning',
      /up to 133 µs to wake up\nnumalign can do this for a grant while it lasts: `numalign run --quiet idle`, or `quiet: \{ idle: true \}`$/,
    ],
    ['idle states that quiet grants have too', 'idle-states', { idleLatency: 10 }, 'ok', /up to 10 µs/],
    ['that there is no cpuidle', 'idle-states', { idleLatency: null }, 'unknown', /no cpuidle/],
    [
      'packets that are handed to candidate CPUs',
      'packet-steering',
      {
        steering: [
          { queue: 'eth0/rx-0', cpus: cpus('0-3') },
          { queue: 'eth0/rx-1', cpus: cpus('0-1') },
        ],
      },
      'warning',
      /\(RPS\): eth0\/rx-0 to CPUs 0-3\n.*`numalign run --quiet packets`/,
    ],
    [
      'governors that save power, by CPU',
      'governors',
      {
        governors: [
          { cpus: cpus('0-1'), governor: 'powersave' },
          { cpus: cpus('2'), governor: 'powersave' },
          { cpus: cpus('3'), governor: 'powersave' },
          { cpus: cpus('4-7'), governor: 'schedutil' },
        ],
      },
      'warning',
      /^powersave on CPUs 2-3, schedutil on CPUs 4-7:.*\n.*`numalign run --quiet frequency`/,
    ],
    ['no cpufreq', 'governors', { governors: null }, 'unknown', /no cpufreq/],
    [
      'interrupts that came to candidate CPUs, the most frequent first',
      'interrupts',
      {
        interrupts: [
          interrupt(24, '0-7', { 2: 3 }),
          interrupt(25, '0-7', { 0: 900, 3: 40, 4: 2 }),
          interrupt(26, '0-1', { 0: 1000 }),
          interrupt(27, '0-7', { 1: 7 }),
        ],
      },
      'warning',
      /^2 device interrupts arrive on CPUs .*: 25 queue-25 \(42 times\), 24 queue-24 \(3 times\)\nnumalign can do this .*`numalign run --quiet interrupts`.*isolcpus=managed_irq,2-7`$/,
    ],
    [
      'interrupts elsewhere',
      'interrupts',
      { interrupts: [interrupt(26, '0-1', { 0: 9 })] },
      'ok',
      /none of a device/,
    ],
    ['interrupts that cannot be read', 'interrupts', { interrupts: null }, 'unknown', /cannot be read/],
    [
      'work on candidate CPUs',
      'workqueues',
      { workqueues: cpus('0-7') },
      'warning',
      /also runs on CPUs 2-7\nnumalign can do this for a grant while it lasts: `numalign run --quiet workqueues`, or `quiet: \{ workqueues: true \}`$/,
    ],
    [
      'that it takes root to move work away',
      'workqueues',
      { workqueues: cpus('0-7'), user: 1000 },
      'warning',
      /while it lasts, as root: `numalign run --quiet workqueues`/,
    ],
    [
      'automatic NUMA balancing',
      'numa-balancing',
      { numaBalancing: 1 },
      'warning',
      /sysctl -w kernel.numa_balancing=0/,
    ],
    ['balancing of one node', 'numa-balancing', { numaBalancing: 1, numaNodes: 1 }, 'ok', /one NUMA node/],
    [
      'balancing that cannot be read',
      'numa-balancing',
      { numaBalancing: null },
      'unknown',
      /does not report it/,
    ],
    [
      'hugepages, and how many are free',
      'hugepages',
      {
        hugepages: [
          { bytes: 2 ** 21, total: 128, free: 64 },
          { bytes: 2 ** 30, total: 0, free: 0 },
        ],
      },
      'ok',
      /^64 of 128 of 2 MiB free, none of 1 GiB$/m,
    ],
    [
      'a kubelet that may give the same CPUs away',
      'kubelet',
      { kubelet: { ...READY.kubelet, found: ['kubelet.service'] } },
      'problem',
      /kubelet.service; it may give CPUs 0-7 to others.*Guaranteed pod/s,
    ],
    [
      'a kubelet that only a private folder is beside',
      'kubelet',
      {
        kubelet: { ...READY.kubelet, found: ['kubelet.service'] },
        stateFolder: { ...READY.stateFolder, scope: 'private' },
      },
      'warning',
      /kubelet.service/,
    ],
    [
      'a kubelet that leaves the managed CPUs alone',
      'kubelet',
      {
        managed: cpus('0-1'),
        kubelet: {
          ...READY.kubelet,
          found: ['kubelet.service'],
          cpu: { policyName: 'static', defaultCpuSet: cpus('2-7'), entries: new Map() },
        },
      },
      'ok',
      /CPUs 0-1 are left to numalign/,
    ],
    [
      'a kubelet whose pods a process keeps on record',
      'kubelet',
      { kubelet: { ...READY.kubelet, found: ['kubelet.service'] }, kubeletRecord: RECORD },
      'ok',
      /kubelet.service; 1 of its pods with CPUs 6-7 is on record, kept by process 12 \(numalign-node\)/,
    ],
    [
      'that the record has lost its keeper',
      'kubelet',
      { kubeletRecord: { ...RECORD, keeper: { ...RECORD.keeper, alive: false } } },
      'problem',
      /CPUs 6-7 is on record, as of then: process 12 \(numalign-node\).* has ended.*start `numalign-node`/s,
    ],
    [
      'that some processes are invisible',
      'kubelet',
      { seesAllProcesses: false },
      'unknown',
      /not every process/,
    ],
    [
      'irqbalance',
      'movers',
      { movers: [{ pid: 7, name: 'irqbalance' }] },
      'warning',
      /^irqbalance \(process 7\).*`IRQBALANCE_BANNED_CPULIST=2-7`/s,
    ],
    ['that irqbalance may be hidden', 'movers', { seesAllProcesses: false }, 'unknown', /not every process/],
  ])('reports %s', (_, check, facts, status, text) => {
    const { found, advice, ...rest } = finding(check, facts);
    expect(rest.status).toBe(status);
    expect(`${found}\n${advice ?? ''}`).toMatch(text);
    // A good finding needs no change; a bad one says what to change.
    if (status !== 'unknown') expect(advice === null).toBe(status === 'ok');
  });
});

function limits(count: number, nrThrottled: number): MachineFacts['limits'] {
  const throttled = { nrThrottled, throttledUs: 1 };
  const cpuMax = { path: '/sys/fs/cgroup/a', cpus: count, quotaUs: count * 1e5, periodUs: 1e5, throttled };
  return { cpuMax, memoryMax: null };
}
