// The node of a simulation: a state in memory, on which the package itself decides.
import { cpusNow } from '../../dist-test/lib/account/cpus-now.js';
import { removePods } from '../../dist-test/lib/account/pod-changes.js';
import { exclusiveCpus, freeCpus } from '../../dist-test/lib/account/pools.js';
import { PERSISTENT_OWNER } from '../../dist-test/lib/admission/placed-pod.js';
import { repack } from '../../dist-test/lib/decision/changes/repacking.js';
import { decideWhether } from '../../dist-test/lib/decision/decision.js';
import { deviceTable } from '../../dist-test/lib/decision/devices/device-draft.js';
import { firstState } from '../../dist-test/lib/decision/machine-settings.js';
import { memoryTables } from '../../dist-test/lib/decision/memory/memory-tables.js';
import { NEVER } from '../../dist-test/lib/decision/question.js';
import { parseConfig } from '../../dist-test/lib/input/config.js';
import { parseDevices } from '../../dist-test/lib/input/devices.js';
import { parseAdmit } from '../../dist-test/lib/input/requests/request.js';
import { NO_OPTIONS } from '../../dist-test/lib/input/requests/request-options.js';
import { canArrange, less } from './arrangement.mjs';
import { capacities, GPU, hasRoom, simulated } from './machines.mjs';

// The decisions that a repacking may take.
const DECISIONS = 200;

const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);

/** A node for {@link simulate}. */
export class PackedNode {
  #machine;
  #placement;
  #ground;
  #state;
  #limits;
  #requests = new Map();

  /**
   * @param options of a manager, beyond those of the machine
   * @param maxMoves how many grants may move for a request
   */
  static async of(machine, options, maxMoves = 0) {
    return new PackedNode(machine, await simulated(machine), options, maxMoves);
  }

  constructor(machine, { topology, reserved, devices }, options, maxMoves) {
    const config = parseConfig({ topology, reservedSystemCPUs: reserved, ...options });
    const resource = { name: GPU, devices: parseDevices(devices, topology, GPU) };
    const present = cpusNow(topology);
    this.#machine = machine;
    this.#limits = { maxMoves, budget: DECISIONS };
    this.#placement = config.placement;
    this.#ground = { topology, present, resources: new Map([[GPU, resource]]), providers: [] };
    this.#state = firstState(config, topology, present);
  }

  admit(request, uid) {
    const question = this.#question(request, uid);
    const decision = decideWhether(question);
    if (decision) return this.#admitted(decision, 0);
    const rejection = this.#rejection(request);
    if (!rejection.isFragmented || this.#limits.maxMoves === 0) return rejection;
    // All grants consent to moves.
    const repacking = repack(question, this.#state.pods, this.#limits);
    return repacking.isFound ? this.#admitted(repacking, repacking.moves.length) : rejection;
  }

  #admitted({ next, pod }, moves) {
    this.#state = next();
    return { admitted: true, moves, distance: this.#distance(pod) };
  }

  release(uid) {
    this.#state = removePods(this.#state, new Set([uid]));
  }

  get cpusInUse() {
    return exclusiveCpus(this.#state).size;
  }

  get grants() {
    return this.#state.pods.length;
  }

  #question(request, uid) {
    return {
      ...this.#ground,
      ...{ state: this.#state, request: this.#request(request), uid, trialUid: uid },
      ...{ owner: PERSISTENT_OWNER, now: NEVER, dryRun: true },
    };
  }

  // The same object for the same sizes.
  #request({ cpu, memory, gpu }) {
    const key = `${cpu} ${memory} ${gpu}`;
    let request = this.#requests.get(key);
    if (request === undefined) {
      // A request without memory gets no CPUs.
      const limits = { cpu, memory: Math.max(1, memory), [GPU]: gpu };
      request = parseAdmit({ containers: [{ name: 'app', limits }] }, NO_OPTIONS, this.#placement);
      this.#requests.set(key, request);
    }
    return request;
  }

  #rejection(request) {
    const isFragmented = hasRoom(this.#free(), request);
    return { admitted: false, isFragmented, isAvoidable: isFragmented && this.#isAvoidable(request) };
  }

  /** What is free on all nodes together. */
  #free() {
    const { topology, present, resources } = this.#ground;
    const memory = memoryTables(this.#state, topology).filter(({ type }) => type === 'memory');
    return {
      cpu: freeCpus(this.#state, present).size,
      memory: sum(memory.map(({ free }) => free)),
      gpu: deviceTable(this.#state, resources).filter(({ free }) => free).length,
    };
  }

  /** Whether a request fits in some arrangement of the grants. Those with GPUs stay. */
  #isAvoidable(request) {
    const nodes = capacities(this.#machine);
    const movable = [request];
    for (const { containers } of this.#state.pods) {
      const [{ devices, request }] = containers;
      const [gpu] = devices[GPU] ?? [];
      const held = { cpu: request.cpu / 1000, memory: request.memory, gpu: devices[GPU]?.length ?? 0 };
      if (gpu) nodes[gpu.nodes[0]] = less(nodes[gpu.nodes[0]], held);
      else movable.push(held);
    }
    return canArrange(nodes, movable) !== false;
  }

  /** The mean distance from the nodes of a pod's CPUs to those of its memory and devices. */
  #distance({ containers: [{ cpus, memory, devices }] }) {
    const { topology } = this.#ground;
    const held = Object.values(devices).flat();
    const to = [...memory, ...held].flatMap(({ nodes }) => nodes ?? []);
    const all = [...topology.nodesOf(cpus)].flatMap((node) =>
      to.map((other) => topology.nodes[node].distances[other]),
    );
    return sum(all) / all.length;
  }
}
