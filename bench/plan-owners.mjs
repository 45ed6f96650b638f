// Planning beside living managers of other processes with grants, on this machine and on a
// simulated one with the same shape.
import { discover } from '../dist/entries/topology.js';
import { measured } from './support/measure.mjs';
import { exclusivePod, newNode } from './support/nodes.mjs';
import { startPeer } from './support/peers.mjs';
import { stateParents } from './support/state-parents.mjs';

export const description =
  'Manager.plan of one CPU with memory beside no or 32 living foreign owners, on this machine and on a simulated one of its shape';
export const explanation = `
The owners are Workers of another process, each with a grant and a lock. *More* compares with the
simulated machine without other owners.`;

const OWNERS = 32;

async function subject(name, machine, owners) {
  const { stateDir, manager, close } = await newNode(stateParents().at(-1).path, machine, 0);
  const others = { stateDir, machine, owners, isOpen: false };
  const peer =
    owners > 0 ? await startPeer(others).catch((error) => close() ?? Promise.reject(error)) : undefined;
  return {
    name: owners > 0 ? `${name}, ${owners} foreign owners` : name,
    plan: () => manager.plan(exclusivePod()),
    async close() {
      await peer?.close();
      close();
    },
  };
}

export async function run() {
  const { cpus } = await discover();
  const same = `package:1 [numa(memory=16GiB)] core:${Math.max(2, cpus.size)} pu:1`;
  const rows = [];
  for (const [machineName, machine] of [
    ['simulated', same],
    ['this machine', null],
  ]) {
    for (const owners of [0, OWNERS]) {
      const { name, plan, close } = await subject(machineName, machine, owners);
      try {
        const found = await measured(name, plan);
        const moreE = found.ratio - (rows[0] ?? found).ratio;
        const remark = `${Math.round(moreE).toLocaleString('en')} E more than the first`;
        rows.push({ ...found, moreE, remark });
      } finally {
        await close();
      }
    }
  }
  return rows;
}
