// State folders with grants on record, of this machine and of a simulated one.
import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { discover } from '../../dist/entries/topology.js';
import { openManager } from '../../dist/index.js';
import { podOf } from './inputs.mjs';

/** Machines by the name that rows have: hwloc's synthetic form, or null for this one. */
export const MACHINES = {
  simulated: 'package:2 numa:4(memory=64GiB) core:160 pu:1',
  'this machine': null,
};

/** Options of managers that only commit, and leave what others do alone. */
export const COMMITTER = { sharedMember: false, cpuManagerReconcilePeriod: 0 };

/** A manager in this folder. */
export const openAt = async (stateDir, machine, options = {}) =>
  openManager({
    stateDir,
    lockTimeoutMs: 120_000,
    ...(machine !== null && { topology: await discover({ synthetic: machine }) }),
    ...options,
  });

const MIB = 2 ** 20;

/**
 * A pod that there is room for a thousand times: in the shared pool of this machine, with memory;
 * on a simulated one with a CPU of its own too.
 */
export const manyPod = (machine) => podOf({ cpu: machine === null ? '250m' : 1, memory: MIB });

/** A pod with a CPU of its own, on any machine. */
export const exclusivePod = () => podOf({ cpu: 1, memory: MIB });

// A process that has grants makes its folder again where somebody removes it: they go when it ends.
const folders = [];
process.once('exit', () => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

/**
 * A manager in a state folder of its own below `path`, which has so many grants. The folder is
 * there until this process ends.
 * @param machine as in MACHINES
 */
export async function newNode(path, machine, grants, options) {
  const stateDir = mkdtempSync(join(path, 'numalign-bench-'));
  folders.push(stateDir);
  const manager = await openAt(stateDir, machine, options);
  const close = () => manager.close();
  try {
    for (let i = 0; i < grants; i++) await manager.admit(manyPod(machine));
  } catch (error) {
    close();
    throw error;
  }
  return { stateDir, manager, close };
}
