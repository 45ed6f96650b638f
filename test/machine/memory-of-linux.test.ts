// needs: folders
// Tiers of memory and distances as Linux shows them, in the /sys of other machines.
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { discover } from '../../lib/entries/topology.js';
import { makeStateDir } from '../support/state-dir.js';
import { outputUnder, type SysMachine, type SysMemory, writeSysTree } from '../support/sys-tree.js';

const COMMAND = fileURLToPath(new URL('../../packages/cli/dist/main.cjs', import.meta.url));

async function discovered(machine: SysMachine) {
  const sys = makeStateDir();
  writeSysTree(sys, machine);
  const output = outputUnder(sys, [process.execPath, COMMAND, 'topology', '--output', 'json']);
  return discover({ json: JSON.parse(output) });
}

/** The tiers of nodes of which the first has the CPUs. */
async function tiersOf(...memory: readonly SysMemory[]): Promise<string[]> {
  const distances = memory.map((_, i) => memory.map((__, j) => (i === j ? 10 : 20)));
  const { nodes } = await discovered({ cpus: [{ core: 0 }, { core: 1 }], distances, memory });
  return nodes.map(({ tier }) => tier);
}

// Needs root for a mount namespace.
describe.runIf(process.getuid!() === 0)('memory of nodes without CPUs', () => {
  it('is of a GPU if the driver lists the node, which hwloc leaves out', async () => {
    expect(await tiersOf({}, { isOfGpu: true }, {})).toEqual(['dram', 'gpu', 'other']);
  });

  it('is persistent or on CXL by the device that gave it to Linux', async () => {
    const nvdimm = 'LNXSYSTM:00/ndbus0/region0/dax0.0';
    const expander = 'platform/ACPI0017:00/root0/region0/dax_region0/dax0.0';
    expect(await tiersOf({}, { dax: nvdimm }, { dax: expander })).toEqual(['dram', 'pmem', 'cxl']);
  });

  it('is HBM or slower by the tier of Linux', async () => {
    expect(await tiersOf({ rank: 4 }, { rank: 0 }, { rank: 22 })).toEqual(['dram', 'hbm', 'cxl']);
  });

  it('is HBM or slower by the bandwidth and latency that the firmware reports', async () => {
    const dram = { bandwidth: 100_000, latency: 100 };
    const [hbm, cxl] = [
      { bandwidth: 400_000, latency: 120 },
      { bandwidth: 30_000, latency: 250 },
    ];
    expect(await tiersOf(dram, hbm, cxl, { bandwidth: 100_000 })).toEqual(['dram', 'hbm', 'cxl', 'other']);
  });
});

describe.runIf(process.getuid!() === 0)('distances', () => {
  it('are those to online nodes, also if a GPU has one and ids have gaps', async () => {
    const cpus = [0, 33, 45].map((node, core) => ({ node, core }));
    const distances = [
      [10, 80, 16, 22],
      [80, 10, 80, 80],
      [16, 80, 10, 16],
      [22, 80, 16, 10],
    ];
    const nodeIds = [0, 8, 33, 45];
    const { nodes } = await discovered({ cpus, distances, nodeIds, memory: [{}, { isOfGpu: true }] });
    expect(nodes.map(({ id, distances: row }) => [id, row])).toEqual(
      nodeIds.map((id, i) => [id, distances[i]]),
    );
  });
});
