// needs: folders
// Kinds of cores as Linux shows them, in the /sys of other machines.
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { discover } from '../../lib/entries/topology.js';
import { makeStateDir } from '../support/state-dir.js';
import { outputUnder, type SysMachine, writeSysTree } from '../support/sys-tree.js';

const COMMAND = fileURLToPath(new URL('../../packages/cli/dist/main.cjs', import.meta.url));

/** The kinds of a machine, the fastest first. */
async function kindsOf(machine: SysMachine): Promise<string[]> {
  const sys = makeStateDir();
  writeSysTree(sys, machine);
  const output = outputUnder(sys, [process.execPath, COMMAND, 'topology', '--output', 'json']);
  const { coreKinds } = await discover({ json: JSON.parse(output) });
  return coreKinds.map(({ cpus }) => String(cpus));
}

const P_CORES = [0, 0, 2, 2].map((core) => ({ core, maxMHz: 5000 }));
const E_CORES = [4, 5].map((core) => ({ core, maxMHz: 3900 }));
const LOW_POWER = { core: 6, maxMHz: 2500 };

// Needs root for a mount namespace.
describe.runIf(process.getuid!() === 0)('kinds of cores', () => {
  it('are P-cores and E-cores by their types, and low-power E-cores by their frequency', async () => {
    const cpus = [...P_CORES, ...E_CORES, LOW_POWER];
    const types = { cpu_core: '0-3', cpu_atom: '4-6' };
    expect(await kindsOf({ cpus, types })).toEqual(['0-3', '4-5', '6']);
  });

  it('are P-cores and E-cores by their types alone', async () => {
    const cpus = [0, 0, 2, 2, 4, 5].map((core) => ({ core }));
    expect(await kindsOf({ cpus, types: { cpu_core: '0-3', cpu_atom: '4-5' } })).toEqual(['0-3', '4-5']);
  });

  it.each(['4-5', '4-6'])(
    'are three by their types alone, with %s in the list of E-cores',
    async (cpu_atom) => {
      const cpus = [0, 0, 2, 2, 4, 5, 6].map((core) => ({ core }));
      const types = { cpu_core: '0-3', cpu_atom, cpu_lowpower: '6' };
      expect(await kindsOf({ cpus, types })).toEqual(['0-3', '4-5', '6']);
    },
  );

  it('are the three capacities of an Arm processor, whatever their frequencies', async () => {
    const capacities = [1024, 870, 870, 350, 350];
    const cpus = capacities.map((capacity, core) => ({ core, capacity, maxMHz: 2000 + core }));
    expect(await kindsOf({ cpus })).toEqual(['0', '1-2', '3-4']);
  });

  it('are one if some cores are favored with a few more megahertz', async () => {
    const cpus = [3900, 3900, 3700, 3700].map((maxMHz, core) => ({ core, maxMHz }));
    expect(await kindsOf({ cpus })).toEqual(['0-3']);
  });

  it('are one where Linux says nothing', async () => {
    expect(await kindsOf({ cpus: [0, 0, 2].map((core) => ({ core })) })).toEqual(['0-2']);
  });
});
