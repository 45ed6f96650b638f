// needs: nothing
// Real machines, from 2 to 256 CPUs: what is wanted for 2, 8 and half a node's CPUs, SMT or not, is as
// few NUMA nodes, packages, L3 groups and cores as have them. Joint placement gives that; where the
// kubelet's differs, it says why.
import { describe, expect, it } from 'vitest';
import { discover, type Topology } from '../../lib/entries/topology.js';
import type { CpuSet } from '../../lib/index.js';
import { captured } from '../support/corpus.mjs';
import { guaranteed, simulate } from '../support/simulated.js';

const APART =
  'no set of nodes suits CPUs and memory alike: the kubelet takes the lowest for memory, and more CPUs by id';
const L3_IN_USE = 'the kubelet counts no L3 groups unless it is asked to, and fills the one in use';
const WHOLE_PACKAGES = 'the kubelet takes whole packages that are free, and the smallest first';

const DIFFERENT: Readonly<Record<string, string>> = {
  'nat-16amd64-4n4c-cgroup-distance-merge: 8': APART,
  'nat-16amd64-8n2c: 8': APART,
  'nat-16ia64-8n2s: 8': APART,
  'nat-20s390-2g6s4c: 2': WHOLE_PACKAGES,
  'nat-20s390-2g6s4c: 8': WHOLE_PACKAGES,
  'nat-20s390-2g6s4c: 10': WHOLE_PACKAGES,
  'nat-32amd64-4s2n4c-cgroup2: 8': APART,
  'nat-64amd64-4s2n4ca2co without SMT: 8': APART,
  'nat-fakeheterocpunuma without SMT: 8': APART,
  'nat-fakememinitiators-1np2c+1npp+gi: 2': APART,
  'nat-nvidiagpunumanodes: 8': L3_IN_USE,
  'nat-nvidiagpunumanodes without SMT: 2': L3_IN_USE,
  'x86-AMD-15h-Bulldozer-4xOpteron-6272: 8': L3_IN_USE,
  'x86-AMD-19h-Zen3-2xEpyc-7763: 8': L3_IN_USE,
};

/** How many of the groups are the fewest with `count` free CPUs. */
function fewest(sizes: readonly number[], count: number): number {
  const largestFirst = [...sizes].sort((a, b) => b - a);
  let groups = 0;
  for (let free = 0; free < count; groups++) free += largestFirst[groups]!;
  return groups;
}

/** What some CPUs are on more of than is needed. */
function excess({ nodes, packages, l3Groups, cores }: Topology, free: CpuSet, cpus: CpuSet): string[] {
  return Object.entries({ nodes, packages, l3Groups, cores }).flatMap(([name, groups]) => {
    const used = groups.filter((group) => group.cpus.intersects(cpus)).length;
    const sizes = groups.map((group) => group.cpus.intersection(free).size);
    return used > fewest(sizes, cpus.size) ? [name] : [];
  });
}

async function differences(topology: Topology, name: string): Promise<string[]> {
  const [first] = topology.cores;
  const free = topology.cpus.difference(first!.cpus);
  const manager = await simulate(topology, { reservedSystemCPUs: String(first!.cpus) });
  const half = Math.max(...topology.nodes.map((node) => node.cpus.size)) >> 1;
  const counts = [...new Set([2, 8, half])].filter((count) => count > 0 && count <= free.size);
  return counts.flatMap((cpu) =>
    (['kubelet', 'joint'] as const).flatMap((placement) => {
      const plan = manager.plan({ containers: [guaranteed('app', { cpu })] }, { placement });
      expect(plan.admitted).toBe(true);
      const more = excess(topology, free, plan.containers[0]!.cpus!);
      return more.length === 0 ? [] : [`${name}: ${cpu}${placement === 'joint' ? ', joint' : ''}`];
    }),
  );
}

describe('on a real machine', () => {
  it.each(captured().map(({ name, machine }) => [name, machine] as const))(
    '%s, requests get what is wanted, or it is known why not',
    async (name, machine) => {
      const whole = await discover({ json: machine });
      const single = whole.withoutSmt();
      const found = whole.cores.length > 1 ? await differences(whole, name) : [];
      const hasSmt = single.cpus.size < whole.cpus.size && single.cores.length > 1;
      if (hasSmt) found.push(...(await differences(single, `${name} without SMT`)));
      const known = Object.keys(DIFFERENT).filter(
        (title) => title.startsWith(`${name}:`) || title.startsWith(`${name} without`),
      );
      expect(found.sort()).toEqual(known.sort());
    },
  );
});
