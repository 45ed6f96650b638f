// What tests see of grants that move, grow and shrink, and other processes on their machine.
import type { Manager } from '../../lib/index.js';
import { Agent } from './agent.js';
import { changed } from './changed.js';

/** An agent that has opened a simulated machine; `prefix`: as that of an {@link Agent}. */
export async function agentOn(
  machine: string,
  stateDir: string,
  options: object = {},
  prefix: string[] = [],
): Promise<Agent> {
  const agent = new Agent(prefix);
  // It may die before it gets a command.
  agent.process.stdin!.on('error', () => {});
  await agent.tell('open', { stateDir, simulate: machine, ...options });
  return agent;
}

/** How many CPUs each grant has, by its name. */
export const sizesOf = (manager: Manager): Record<string, number> =>
  Object.fromEntries(manager.grants().map(({ name, cpus }) => [name, cpus.size]));

/** Resolves once the grants have these sizes. */
export function settled(manager: Manager, sizes: Record<string, number>): Promise<void> {
  const wanted = JSON.stringify(sizes);
  return changed(manager, () => JSON.stringify(sizesOf(manager)) === wanted);
}

/** Whether a grant is to move, grow or shrink. */
export const isAnnounced = (manager: Manager): boolean =>
  manager.grants().some(({ upcoming }) => upcoming !== null);
