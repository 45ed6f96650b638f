// State folders with grants on record, of this machine and of a simulated one.
import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { discover } from '../../dist/entries/topology.js';
import { openManager } from '../../dist/index.js';
import { podOf } from './inputs.mjs';

/** Machines by their name in rows: hwloc's synthetic form, or null for this machine. */
export const MACHINES = {
  simulated: 'package:2 numa:4(memory=64GiB) core:160 pu:1',
  'this machine': null,
};

/** Options of managers that only commit, and ignore what others do. */
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
 * A pod that fits a thousand times: on this machine in the shared pool, with memory; on a simulated
 * one also with its own CPU.
 */
export const manyPod = (machine) => podOf({ cpu: machine === null ? '250m' : 1, memory: MIB });

/** A pod with its own CPU, on any machine. */
export const exclusivePod = () => podOf({ cpu: 1, memory: MIB });

// A process with grants makes its folder again if it is removed, so the folders are removed when it
// ends.
const folders = [];
process.once('exit', () => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

/**
 * A manager with this many grants, in its own state folder below `path`. The folder exists until
 * this process ends.
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
