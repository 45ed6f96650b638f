// Requests of agents.
import { randomUUID } from 'node:crypto';

const NOTICE_MS = 200;
const MOVES_AN_HOUR = [undefined, undefined, undefined, undefined, 3, 100];

function quietParts(random) {
  const [interrupts, workqueues] = [random.chance(2), random.chance(2)];
  return { interrupts, workqueues, idle: random.chance(2) && { maxLatency: random.below(100) } };
}

/** The terms on which a grant may be moved; undefined: it may not. */
function consent(random) {
  const [maxPerHour, isPicky] = [random.pick(MOVES_AN_HOUR), random.chance(10)];
  return {
    notice: NOTICE_MS,
    ...(maxPerHour !== undefined && { maxPerHour }),
    ...(isPicky && { exclude: [random.below(2)] }),
  };
}

/** Options of a grant. `hasMoves`: it may use options of the dynamic policy. */
export function randomRequest(random, machine, hasMoves) {
  const { cpu, memory, devices } = machine.amounts;
  const options = { cpu: random.pick(cpu) };
  if (memory.length > 0 && random.chance(2)) options.memory = random.pick(memory);
  if (devices.length > 0 && random.chance(3))
    options.resources = { [machine.resource]: random.pick(devices) };
  if (random.chance(4)) options.name = `name-${random.below(4)}`;
  if (machine.isQuiet && !random.chance(4)) options.quiet = quietParts(random);
  if (!hasMoves) return options;
  if (machine.hasElastic && random.chance(3)) {
    options.cpu = { min: 1, max: 2 + random.below(6) };
    options.weight = random.pick([undefined, 50, 300]);
    if (random.chance(2)) options.movable = consent(random);
    return options;
  }
  if (options.cpu > 1 && random.chance(6)) options.parts = { main: 1 };
  else if (random.chance(5)) Object.assign(options, { cpu: options.cpu + 0.5, mixed: true });
  if (random.chance(2)) options.policy = 'single-numa-node';
  if (!random.chance(machine.hasMovesAbove ? 4 : 2)) options.movable = consent(random);
  return options;
}

/**
 * A pod of two containers, sometimes after an init container that ends; with the options of its
 * admission.
 */
export function randomPod(random, machine) {
  const { cpu, memory } = machine.amounts;
  const container = (name) => ({
    name,
    limits: { cpu: random.pick(cpu.slice(0, 3)), memory: random.pick(memory) },
  });
  const pod = {
    uid: randomUUID(),
    name: 'pod',
    containers: [container('web'), container('cache')],
    ...(random.chance(3) && { initContainers: [container('init')] }),
  };
  const policy = random.chance(2) ? { policy: 'single-numa-node', scope: 'pod' } : {};
  return { pod, options: { ...policy, ...(random.chance(2) && { movable: consent(random) }) } };
}
