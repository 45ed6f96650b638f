// Managers of simulated machines, each with a state folder of its own.
import { onTestFinished } from 'vitest';
import { discover, type Topology } from '../../lib/entries/topology.js';
import { type Manager, type ManagerOptions, type ManagerView, openManager } from '../../lib/index.js';
import { makeStateDir } from './state-dir.js';

const topologyOf = async (machine: string | Topology) =>
  typeof machine === 'string' ? await discover({ synthetic: machine }) : machine;

export async function simulate(machine: string | Topology, options: ManagerOptions = {}): Promise<Manager> {
  const topology = await topologyOf(machine);
  const manager = await openManager({ topology, stateDir: makeStateDir(), ...options });
  onTestFinished(() => manager.close());
  return manager;
}

/** To look only. */
export async function view(machine: string | Topology, stateDir: string): Promise<ManagerView> {
  const topology = await topologyOf(machine);
  const manager = await openManager({ topology, stateDir, readOnly: true });
  onTestFinished(() => manager.close());
  return manager;
}

/** A Guaranteed container: its limits are its requests. */
export function guaranteed(name: string, resources: Record<string, number | string>) {
  const limits = { memory: '64Mi', ...resources };
  return { name, requests: limits, limits };
}
