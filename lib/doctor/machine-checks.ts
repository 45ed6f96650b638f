// Checks of the machine and its kernel.
import { cpusNamed } from '../base/text/cpus-named.js';
import { formatBytes } from '../input/values/quantity.js';
import { CpuSet } from '../machine/cpu-set.js';
import { cpuMask } from '../quiet/kernel/cpu-mask.js';
import { listSome, moveAway } from './advice.js';
import type { InterruptFacts, MachineFacts } from './facts.js';
import { ok, unknown, type Verdict, warning } from './finding.js';

export function smt({ cpusPerCore }: MachineFacts): Verdict {
  if (cpusPerCore < 2) return ok('off: a CPU is a core');
  return warning(
    `on, ${cpusPerCore} CPUs a core: whoever is on the other CPU of a core slows a granted one down`,
    'ask for whole cores (`--cpu-option full-pcpus-only`), or `--smt hold-sibling`',
  );
}

export function isolatedCpus({ unbalanced, tickless }: MachineFacts): Verdict {
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

export function governors({ governors, candidates }: MachineFacts): Verdict {
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

export function interrupts(facts: MachineFacts): Verdict {
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

export function workqueues(facts: MachineFacts): Verdict {
  const { workqueues, candidates } = facts;
  if (workqueues === null) return unknown('their mask cannot be read');
  const near = workqueues.intersection(candidates);
  if (near.isEmpty) return ok(`kept to ${cpusNamed(workqueues)}`);
  return warning(
    `work that belongs to no CPU is done on ${cpusNamed(near)} too`,
    moveAway(facts, (cpus) => `\`echo ${cpuMask(cpus)} > /sys/devices/virtual/workqueue/cpumask\``),
  );
}

export function numaBalancing({ numaBalancing, numaNodes }: MachineFacts): Verdict {
  if (numaNodes === 1) return ok('there is one NUMA node: nothing to balance');
  if (numaBalancing === null) return unknown('the kernel does not tell');
  if (numaBalancing === 0) return ok('off');
  return warning(
    'on: the kernel unmaps pages to see who uses them, and moves them and their threads',
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
