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

/**
 * A manager in a state folder of its own below `path`, which has so many grants.
 * @param machine as in MACHINES
 */
export async function newNode(path, machine, grants, options) {
  const stateDir = mkdtempSync(join(path, 'numalign-bench-'));
  const manager = await openAt(stateDir, machine, options).catch((error) => {
    rmSync(stateDir, { recursive: true });
    throw error;
  });
  const node = {
    stateDir,
    manager,
    machine,
    async fill(count) {
      for (let i = 0; i < count; i++) await manager.admit(manyPod(machine));
    },
    close() {
      manager.close();
      rmSync(stateDir, { recursive: true });
    },
  };
  try {
    await node.fill(grants);
  } catch (error) {
    node.close();
    throw error;
  }
  return node;
}
