// Machines on which no NUMA node has room for a request, while there is enough in total.
import { onTestFinished } from 'vitest';
import {
  type AcquireOptions,
  type Grant,
  type Manager,
  type ManagerOptions,
  openManager,
} from '../../lib/index.js';
import { GI, machineOf } from './memory-machine.js';
import { makeStateDir } from './state-dir.js';

export const SINGLE = { policy: 'single-numa-node' } as const;
export const DYNAMIC = { cpuManagerPolicy: 'dynamic' } as const;

/** Two nodes of this many CPUs. */
export async function openTwoNodes(options: ManagerOptions = DYNAMIC, cpus = 4): Promise<Manager> {
  const topology = await machineOf([0, 1].map(() => ({ cpus, memory: 8 * GI })));
  const manager = await openManager({ topology, stateDir: makeStateDir(), ...options });
  onTestFinished(() => manager.close());
  return manager;
}

/** The CPUs of grants by their names. */
export const cpusByName = (manager: Manager) =>
  Object.fromEntries(manager.grants().map(({ name, cpus }) => [name, String(cpus)]));

/** Two of the four CPUs of each node are free: `mover` has 0-1, `filler` 4-5. */
export async function fragment(manager: Manager, options: Partial<AcquireOptions> = { movable: true }) {
  const mover = await manager.acquire({ cpu: 2, name: 'mover', ...SINGLE, ...options });
  const rest = await manager.acquire({ cpu: 2, ...SINGLE });
  const filler = await manager.acquire({ cpu: 2, name: 'filler', ...SINGLE });
  await rest.release();
  return { mover, filler };
}

/** `a` and `b` have a CPU and 1 GiB of node 0 each, `filler` two CPUs of node 1; the rest is free. */
export async function fragmentByTwo(
  manager: Manager,
  options: Partial<AcquireOptions> = { movable: true },
): Promise<readonly Grant[]> {
  const small = { cpu: 1, memory: '1Gi', ...SINGLE, ...options } as const;
  const movers = [
    await manager.acquire({ ...small, name: 'a' }),
    await manager.acquire({ ...small, name: 'b' }),
  ];
  const rest = await manager.acquire({ cpu: manager.topology.nodes[0]!.cpus.size - 2, ...SINGLE });
  await manager.acquire({ cpu: 2, name: 'filler', ...SINGLE });
  await rest.release();
  return movers;
}

/** A request that fits on no node. */
export const askForThree = (manager: Manager, options: Partial<AcquireOptions> = {}): Promise<Grant> =>
  manager.acquire({ cpu: 3, name: 'asker', ...SINGLE, ...options });
