// Loading a machine, compared with hwloc alone with the same filters and flags.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { discover } from '../dist/entries/topology.js';
import { measured } from './support/measure.mjs';
import { yardstick } from './support/yardstick.mjs';

export const description = 'discover: this machine, and 4,096 PUs from XML';
export const explanation = `
Of this machine \`discover\` reads the PCI devices too, for which hwloc would read the configuration
space of each, 14 ms.`;

const LARGE = 'package:8 numa:4 l3:4 core:16 pu:2';

const load = (name, call, xml) =>
  measured(name, call, {
    ...{ least: 10, rounds: 5, roundNs: 100e6, yardstick: 'hwloc' },
    yardstickTimes: () => Array.from({ length: 10 }, () => yardstick.hwlocLoad(xml)),
  });

export async function run() {
  const folder = mkdtempSync(join(tmpdir(), 'numalign-bench-'));
  const path = join(folder, 'machine.xml');
  const xml = yardstick.hwlocXml(LARGE);
  try {
    writeFileSync(path, xml);
    return [
      await load('this machine', () => discover(), null),
      await load('4,096 PUs from XML', () => discover({ xml: path }), Buffer.from(`${xml}\0`)),
    ];
  } finally {
    rmSync(folder, { recursive: true });
  }
}
