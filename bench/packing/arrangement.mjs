// Whether any arrangement of requests on NUMA nodes exists, each on one node: an upper bound for
// any number of moves.
import { hasRoom } from './machines.mjs';

const STEPS = 5000;

/**
 * Undefined if the steps did not suffice.
 * @param free what each node has
 */
export function canArrange(free, requests, steps = STEPS) {
  const largest = [...requests].sort((a, b) => b.cpu - a.cpu || b.memory - a.memory || b.gpu - a.gpu);
  const least = largest.at(-1)?.cpu;
  // The sums of everything from each place of the list on.
  const sums = new Array(largest.length + 1).fill(0);
  for (let i = largest.length - 1; i >= 0; i--) sums[i] = sums[i + 1] + largest[i].cpu;
  const visited = new Set();
  let remaining = steps;

  function place(at, nodes) {
    if (at === largest.length) return true;
    const usable = nodes.reduce((sum, { cpu }) => sum + (cpu < least ? 0 : cpu), 0);
    if (usable < sums[at]) return false;
    // Nodes with the same amounts are interchangeable.
    const states = nodes.map(({ cpu, memory, gpu }) => `${cpu} ${memory} ${gpu}`);
    const key = `${at}: ${[...states].sort().join(', ')}`;
    if (visited.has(key)) return false;
    if (remaining-- === 0) return undefined;
    const tried = new Set();
    for (const node of [...nodes.keys()].sort((a, b) => nodes[a].cpu - nodes[b].cpu)) {
      if (tried.has(states[node]) || !hasRoom(nodes[node], largest[at])) continue;
      tried.add(states[node]);
      const answer = place(at + 1, nodes.with(node, less(nodes[node], largest[at])));
      if (answer !== false) return answer;
    }
    visited.add(key);
    return false;
  }

  return place(0, free);
}

/** What a node has left after a request. */
export const less = (free, { cpu, memory, gpu }) => ({
  cpu: free.cpu - cpu,
  memory: free.memory - memory,
  gpu: free.gpu - gpu,
});
