// Checks of the machine and its kernel.
import { cpusNamed } from '../base/text/cpus-named.js';
import { WHOLE_QUIET } from '../input/requests/quiet.js';
import { formatBytes } from '../input/values/quantity.js';
import { CpuSet } from '../machine/cpu-set.js';
import { kernelWork } from '../quiet/kernel-work.js';
import { byQuiet, command, grantable, listSome } from './advice.js';
import type { CoreKindFacts, InterruptFacts, MachineFacts } from './facts.js';
import { ok, unknown, type Verdict, warning } from './finding.js';

export function smt({ cpusPerCore }: MachineFacts): Verdict {
  if (cpusPerCore.at(-1)! < 2) return ok('off: a CPU is a core');
  return warning(
    `on, ${cpusPerCore.join(' or ')} CPUs per core: a thread on the other CPU of a core slows a granted CPU down`,
    'ask for whole cores (`--cpu-option full-pcpus-only`), or `--smt hold-sibling`',
  );
}

export function coreKinds(facts: MachineFacts): Verdict {
  const { coreKinds, reserved, reservable, cpusPerCore } = facts;
  const [fastest, ...slower] = coreKinds as [CoreKindFacts, ...CoreKindFacts[]];
  if (slower.length === 0) {
    if (cpusPerCore.length === 1) return ok('one: all cores are alike');
    const sizes = cpusPerCore.join(' or ');
    return unknown(
      `cores have ${sizes} CPUs (some may be offline), and Linux names no kinds: all count as alike`,
    );
  }
  const found = `${coreKinds.map(kindText).join(', ')}; requests get the fastest that have room`;
  const inWay = reserved.intersection(fastest.cpus);
  if (inWay.isEmpty || reservable.isEmpty || reservable.intersects(fastest.cpus)) return ok(found);
  return warning(
    `${found}; ${cpusNamed(inWay)} of performance cores ${inWay.size === 1 ? 'is' : 'are'} reserved, and not granted`,
    `reserve slower ones: ${command(facts, `configure --reserved ${reservable}`)}`,
  );
}

function kindText({ name, cpus, free }: CoreKindFacts): string {
  const text = `${name} cores ${cpus} (${cpus.size} CPUs`;
  return free === null ? `${text})` : `${text}, ${free.size === 0 ? 'none' : free.size} free)`;
}

export function isolatedCpus({ unbalanced, tickless }: MachineFacts): Verdict {
  const balanced = tickless.difference(unbalanced);
  if (unbalanced.isEmpty && tickless.isEmpty) return ok('none: load is balanced over all CPUs');
  if (!balanced.isEmpty) {
    return warning(
      `${cpusNamed(balanced)} have no tick (nohz_full), but load is balanced over them: a second thread there brings the tick back`,
      `boot with \`isolcpus=${balanced}\` too, or grant them at the level isolated`,
    );
  }
  return ok(`${unbalanced} (isolcpus or isolated partitions)`);
}

export function governors(facts: MachineFacts): Verdict {
  const { governors, candidates } = facts;
  if (governors === null) return unknown('no cpufreq here: the firmware or the host of this machine decides');
  const slow = governors.filter(
    ({ governor, cpus }) => governor !== 'performance' && cpus.intersects(candidates),
  );
  if (slow.length === 0) return ok('performance');
  const names = [...new Set(slow.map(({ governor }) => governor))];
  const cpusOf = (name: string) =>
    slow.filter(({ governor }) => governor === name).reduce((all, { cpus }) => all.union(cpus), CpuSet.EMPTY);
  const found = names.map((name) => `${name} on ${cpusNamed(cpusOf(name))}`).join(', ');
  return warning(`${found}: a CPU that was idle starts slowly`, byQuiet(facts, 'frequency'));
}

export function interrupts(facts: MachineFacts): Verdict {
  const { interrupts, candidates } = facts;
  if (interrupts === null) return unknown('/proc/interrupts cannot be read');
  const countOf = ({ counts }: InterruptFacts) =>
    [...counts].reduce((sum, [cpu, count]) => (candidates.has(cpu) ? sum + count : sum), 0);
  const near = interrupts
    .filter(({ cpus }) => cpus.intersects(candidates))
    .map((interrupt) => ({ ...interrupt, count: countOf(interrupt) }))
    .filter(({ count }) => count > 0)
    .sort((a, b) => b.count - a.count);
  if (near.length === 0) return ok(`none of a device on ${cpusNamed(candidates)}`);
  const list = listSome(near, ({ irq, name, count }) => `${irq} ${name} (${count} times)`);
  const cpus = grantable(facts);
  return warning(
    `${near.length} device interrupt${near.length === 1 ? ' arrives' : 's arrive'} on CPUs that numalign grants: ${list}`,
    cpus.isEmpty
      ? byQuiet(facts, 'interrupts')
      : `${byQuiet(facts, 'interrupts')}; for those that the kernel does not move, boot with \`isolcpus=managed_irq,${cpus}\``,
  );
}

export function workqueues(facts: MachineFacts): Verdict {
  const { workqueues, candidates } = facts;
  if (workqueues === null) return unknown('their mask cannot be read');
  const near = workqueues.intersection(candidates);
  if (near.isEmpty) return ok(`kept to ${cpusNamed(workqueues)}`);
  return warning(`work that belongs to no CPU also runs on ${cpusNamed(near)}`, byQuiet(facts, 'workqueues'));
}

export function packetSteering(facts: MachineFacts): Verdict {
  const { steering, candidates } = facts;
  const near = steering.filter(({ cpus }) => cpus.intersects(candidates));
  if (near.length === 0) return ok(`none to ${cpusNamed(candidates)}`);
  const list = listSome(near, ({ queue, cpus }) => `${queue} to ${cpusNamed(cpus)}`);
  return warning(
    `the kernel sends packets to CPUs that numalign grants (RPS): ${list}`,
    byQuiet(facts, 'packets'),
  );
}

export function idleStates(facts: MachineFacts): Verdict {
  const { idleLatency } = facts;
  if (idleLatency === null)
    return unknown('no cpuidle here: the firmware or the host of this machine decides');
  const found = `an idle CPU takes up to ${idleLatency} µs to wake up`;
  return idleLatency <= WHOLE_QUIET.idle!.maxLatency ? ok(found) : warning(found, byQuiet(facts, 'idle'));
}

export function kernelWorkHere(facts: MachineFacts): Verdict {
  const work = kernelWork(facts.kernelSettings, grantable(facts));
  if (work.length === 0) return ok('none that the command line of the kernel could change');
  return warning(work.map(({ found }) => found).join('; '), work.map(({ advice }) => advice).join('; '));
}

export function numaBalancing({ numaBalancing, numaNodes }: MachineFacts): Verdict {
  if (numaNodes === 1) return ok('there is one NUMA node: nothing to balance');
  if (numaBalancing === null) return unknown('the kernel does not report it');
  if (numaBalancing === 0) return ok('off');
  return warning(
    'on: the kernel unmaps pages to see which threads use them, and moves pages and threads',
    '`sysctl -w kernel.numa_balancing=0`',
  );
}

export function hugepages({ hugepages }: MachineFacts): Verdict {
  if (hugepages.length === 0) return ok('the kernel has none');
  const text = hugepages.map(({ bytes, total, free }) =>
    total === 0
      ? `none of ${formatBytes(bytes)}`
      : `${free ?? 'an unknown number'} of ${total} of ${formatBytes(bytes)} free`,
  );
  return ok(text.join(', '));
}
