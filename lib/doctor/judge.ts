// Judge: judges a machine by its facts: what numalign can do there, and what to change. Pure.
import { cgroups, cpuQuota, cpusets, delegation, enforcement } from './cgroup-checks.js';
import type { MachineFacts } from './facts.js';
import type { Finding, Verdict } from './finding.js';
import {
  coreKinds,
  governors,
  hugepages,
  idleStates,
  interrupts,
  isolatedCpus,
  kernelWorkHere,
  numaBalancing,
  packetSteering,
  smt,
  workqueues,
} from './machine-checks.js';
import { kubelet, movers } from './neighbour-checks.js';
import { allowedCpus, capabilities, memoryPolicy, seccomp, stateFolder } from './process-checks.js';

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
  CPUs: {
    smt,
    'core-kinds': coreKinds,
    'isolated-cpus': isolatedCpus,
    governors,
    'idle-states': idleStates,
    interrupts,
    workqueues,
    'packet-steering': packetSteering,
    'kernel-work': kernelWorkHere,
  },
  memory: { 'numa-balancing': numaBalancing, hugepages },
  'other managers': { kubelet, movers },
};

export function judge(facts: MachineFacts): Finding[] {
  return Object.entries(CHECKS).flatMap(([group, checks]) =>
    Object.entries(checks).map(([check, verdict]) => ({ group, check, ...verdict(facts) })),
  );
}
