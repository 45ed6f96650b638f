// needs: nothing
// What is printed of a machine is read back as the same machine.
import { readdirSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { discover, type MachineJson, type Topology } from '../../lib/entries/topology.js';
import { type Manager, NumalignError } from '../../lib/index.js';
import { captured, corpus, machineJson } from '../support/corpus.mjs';
import { guaranteed, simulate } from '../support/simulated.js';

const captures = new URL('../fixtures/machines/', import.meta.url);

const MACHINES: readonly (readonly [string, () => Promise<Topology>])[] = [
  ...corpus().map((machine) => [machine.name, () => discover({ json: machineJson(machine) })] as const),
  ...captured().map(({ name, machine }) => [name, () => discover({ json: machine })] as const),
  ...readdirSync(captures).map(
    (file) => [file, () => discover({ xml: new URL(file, captures).pathname })] as const,
  ),
];

const printed = (topology: Topology): MachineJson => JSON.parse(JSON.stringify(topology.toJSON()));

/** The CPUs, memory and NUMA nodes of some pods. */
function plansOn(manager: Manager) {
  const { size } = manager.topology.cpus;
  return [1, 2, 3, 8, size >> 1, size - 1].map((cpu) => {
    try {
      const plan = manager.plan({ containers: [guaranteed('main', { cpu })] });
      return plan.containers.map(({ cpus, memory, hint }) => [String(cpus), memory, String(hint.nodes)]);
    } catch (error) {
      if (error instanceof NumalignError) return error.code;
      throw error;
    }
  });
}

describe.each(MACHINES)('%s', (_, machine) => {
  it('is the same machine after it was printed and read', async () => {
    const topology = await machine();
    const json = printed(topology);
    const again = await discover({ json });
    expect(printed(again)).toEqual(json);
    expect(again.locations).toEqual(topology.locations);
    expect(again.nodes).toEqual(topology.nodes);
    expect(again.devices).toEqual(topology.devices);
    expect(plansOn(await simulate(again))).toEqual(plansOn(await simulate(topology)));
  });
});
