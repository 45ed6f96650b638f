// Checks of other programs that place the CPUs of containers. Pure.
import type { Neighbour } from '../neighbours/neighbours.js';
import type { NodeFacts } from './node-facts.js';
import { ok, problem, type Verdict, warning } from './verdict.js';

const listOf = (neighbours: readonly Neighbour[]) =>
  neighbours.map(({ name, at }) => `${name} (${at})`).join(', ');

export function neighbours({ nri, neighbours }: NodeFacts): Verdict {
  if (!nri) return ok('containers are left to the runtime and the kubelet');
  const placing = neighbours.filter(({ isPlacing }) => isPlacing);
  if (placing.length > 0)
    return problem(
      `${listOf(placing)} places CPUs of containers, too: no container is created if two plugins set them`,
      'end the one or the other; with --no-nri numalign-node only publishes and records',
    );
  if (neighbours.length > 0)
    return warning(
      `${listOf(neighbours)} is a plugin of the runtime, too`,
      'see that it sets neither CPUs nor memory nodes of containers',
    );
  return ok('no other program that places CPUs is seen');
}

export function requiredPlugins({ nri, requiredPlugins, pluginName }: NodeFacts): Verdict {
  if (!nri) return ok('containers are left to the runtime and the kubelet');
  const others = requiredPlugins.filter((name) => name !== pluginName);
  if (others.length > 0)
    return warning(
      `the runtime creates no container without the plugin ${others.join(', ')}`,
      'see that it sets neither CPUs nor memory nodes of containers',
    );
  return requiredPlugins.length > 0
    ? ok(`the runtime creates no container while ${pluginName} is away`)
    : ok(`the runtime creates containers while ${pluginName} is away: on all CPUs`);
}
