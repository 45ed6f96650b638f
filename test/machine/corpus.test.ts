// needs: nothing
// Machines as they are sold, and what requests get there.
import { describe, expect, it } from 'vitest';
import { discover } from '../../lib/entries/topology.js';
import { CpuSet } from '../../lib/index.js';
import { type CorpusMachine, type CorpusPlan, corpus, machineJson } from '../support/corpus.mjs';
import { guaranteed, simulate } from '../support/simulated.js';

async function planned(machine: CorpusMachine, { cpus, smt, options = {} }: CorpusPlan) {
  const whole = await discover({ json: machineJson(machine) });
  const topology = smt === false ? whole.withoutSmt() : whole;
  const reservedSystemCPUs = String(CpuSet.parse(machine.reserved).intersection(topology.cpus));
  const manager = await simulate(topology, reservedSystemCPUs === '' ? {} : { reservedSystemCPUs });
  const pod = { containers: [guaranteed('app', { cpu: cpus })] };
  return String(manager.plan(pod, options).containers[0]?.cpus ?? '');
}

const titleOf = ({ cpus, smt, options }: CorpusPlan) =>
  `${cpus} CPUs${smt === false ? ' without SMT' : ''}${options ? ` with ${JSON.stringify(options)}` : ''}`;

describe.each(corpus())('on $name', (machine) => {
  it.each(machine.plans.map((plan) => [titleOf(plan), plan] as const))(
    '%s are as wanted',
    async (_, plan) => {
      const { want, gets = want, because } = plan;
      expect(await planned(machine, plan)).toBe(String(CpuSet.parse(gets)));
      expect(because === undefined).toBe(gets === want);
    },
  );
});
