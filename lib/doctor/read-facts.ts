// ReadFacts: reads MachineFacts. Changes nothing and needs no rights; what this process may not
// read is null.
import { existsSync } from 'node:fs';
import { refusalOf, textOf, unlessRefused } from '../base/errors.js';
import { native } from '../base/native.js';
import { mountOf } from '../cgroups/files/mounts.js';
import { limitsOfProcess } from '../cgroups/limits.js';
import { slowestFor } from '../decision/cpus/core-kinds.js';
import { takeNearFirst } from '../decision/cpus/cpu-manager.js';
import { isFromBefore } from '../enforcement/members/earlier-masks.js';
import { DEFAULT_PLACEMENT } from '../input/placement.js';
import { readKubeletFacts } from '../kubelet/kubelet-facts.js';
import { affinity } from '../machine/affinity.js';
import { CpuSet } from '../machine/cpu-set.js';
import { readNumber } from '../machine/hugepages.js';
import { ticklessCpus, unbalancedCpus } from '../machine/isolated-cpus.js';
import { onlineCpus } from '../machine/online-cpus.js';
import type { Topology } from '../machine/topology.js';
import { namedProcesses } from '../processes/named-processes.js';
import { INITIAL_PID_NAMESPACE, pidNamespace } from '../processes/process-identity.js';
import { parseCpuMask } from '../quiet/kernel/cpu-mask.js';
import { kernelFiles, visibleFiles } from '../quiet/kernel/kernel-files.js';
import { readKernelSettings } from '../quiet/kernel-work.js';
import { checkUsable, scopeOf } from '../state/folder/folder.js';
import { notTheGroups } from '../state/folder/machine-group.js';
import { originOf } from '../threads/mask-wish.js';
import { ownFolder, readCgroups } from './cgroup-facts.js';
import type { FactsQuestion, MachineFacts, StateFolderFacts } from './facts.js';
import { readForeignCpusets } from './foreign-cpusets.js';
import {
  readGovernors,
  readHugepages,
  readIdleLatency,
  readInterrupts,
  readSteering,
} from './hardware-facts.js';

const MOVERS = ['irqbalance', 'numad'];

const WORKQUEUES = '/sys/devices/virtual/workqueue/cpumask';

const NUMA_BALANCING = '/proc/sys/kernel/numa_balancing';

export function readMachineFacts(question: FactsQuestion): MachineFacts {
  const { topology, stateDir, settings, refusal } = question;
  const online = onlineCpus(topology);
  const managed = settings?.managedCPUs ?? online;
  const reserved = settings?.reservedSystemCPUs ?? CpuSet.EMPTY;
  const candidates = managed.difference(reserved);
  const scope = scopeOf(stateDir);
  const cgroups = readCgroups(question, scope);
  const [mask, unbalanced] = [affinity(), unbalancedCpus()];
  const status = textOf('/proc/self/status') ?? '';
  const field = (name: string) => new RegExp(`^${name}:\\s*(\\S+)$`, 'm').exec(status)?.[1];
  const files = visibleFiles(kernelFiles());
  const [capabilities, seccomp] = [field('CapEff'), field('Seccomp')];
  return {
    online,
    managed,
    candidates,
    firstCore: (
      topology.cores.find(({ cpus }) => cpus.intersects(candidates))?.cpus ?? CpuSet.EMPTY
    ).intersection(managed),
    allowed: mask,
    limit: topology.allowed,
    maskOrigin: originOf({
      mask,
      limit: topology.allowed,
      pool: question.pool.difference(unbalanced),
      grants: () => question.grants,
      isFromBefore: () =>
        isFromBefore(stateDir, {
          mask,
          limit: topology.allowed,
          present: { online, isolated: unbalanced },
        }),
    }),
    numaNodes: topology.nodes.length,
    cpusPerCore: [...new Set(topology.cores.map(({ cpus }) => cpus.size))].sort((a, b) => a - b),
    coreKinds: topology.coreKinds.map(({ name, cpus }) => ({
      name,
      cpus,
      free: question.free?.intersection(cpus) ?? null,
    })),
    reserved,
    reservable: slowest(topology, managed.difference(unbalanced), reserved.size),
    user: process.geteuid?.() ?? 0,
    capabilities: capabilities === undefined ? null : BigInt(`0x${capabilities}`),
    seccomp: seccomp === undefined ? null : Number(seccomp),
    memoryPolicyRefusal: memoryPolicyRefusal(),
    stateFolder: readStateFolder(stateDir, scope, refusal),
    cgroups,
    limits: ownFolder('cpu') === undefined ? null : unlessRefused(() => limitsOfProcess(process.pid), null),
    foreignCpusets: readForeignCpusets(typeof cgroups === 'string' ? undefined : cgroups.rootPath),
    kubelet: readKubeletFacts(),
    kubeletRecord: question.kubelet,
    movers: [...namedProcesses(MOVERS)],
    seesAllProcesses: seesAllProcesses(),
    unbalanced,
    tickless: ticklessCpus(),
    governors: readGovernors(files),
    idleLatency: readIdleLatency(files),
    interrupts: readInterrupts(),
    workqueues: parseCpuMask(textOf(WORKQUEUES) ?? ''),
    steering: readSteering(files),
    kernelSettings: readKernelSettings(files),
    numaBalancing: existsSync(NUMA_BALANCING) ? (readNumber(NUMA_BALANCING) ?? null) : 0,
    hugepages: readHugepages(topology),
  };
}

// As CPUs are reserved by amount.
function slowest(machine: Topology, all: CpuSet, count: number): CpuSet {
  const from = slowestFor(machine, all, count);
  if (count > from.size) return CpuSet.EMPTY;
  return takeNearFirst({ machine, placement: DEFAULT_PLACEMENT, from, count, isWhole: false });
}

function memoryPolicyRefusal(): string | undefined {
  const refusal = refusalOf(() => native.memoryPolicy());
  return refusal?.errnoName ?? refusal?.message;
}

function readStateFolder(
  path: string,
  scope: StateFolderFacts['scope'],
  refusal: string | undefined,
): StateFolderFacts {
  return {
    path,
    scope,
    exists: existsSync(path),
    fileSystem: mountOf(path)?.type ?? null,
    refusal: refusalOf(() => checkUsable(path))?.message ?? refusal,
    notTheGroups: scope === 'machine' && existsSync(path) ? notTheGroups(path) : undefined,
  };
}

// A pid namespace or hidepid hides processes.
const seesAllProcesses = (): boolean =>
  pidNamespace() === INITIAL_PID_NAMESPACE && textOf('/proc/1/comm') !== undefined;
