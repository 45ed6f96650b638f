// The node of a simulation: a state in memory, on which the package itself decides.
import { cpusNow } from '../../dist/account/cpus-now.js';
import { removePods } from '../../dist/account/pod-changes.js';
import { exclusiveCpus, freeCpus } from '../../dist/account/pools.js';
import { PERSISTENT_OWNER } from '../../dist/admission/placed-pod.js';
import { decide } from '../../dist/decision/decision.js';
import { deviceTable } from '../../dist/decision/devices/device-tables.js';
import { firstState } from '../../dist/decision/machine-settings.js';
import { memoryTables } from '../../dist/decision/memory/memory-tables.js';
import { NEVER } from '../../dist/decision/question.js';
import { parseConfig } from '../../dist/input/config.js';
import { parseDevices } from '../../dist/input/devices.js';
import { NO_OPTIONS, parseAdmit } from '../../dist/input/request.js';
import { capacities, GPU, hasRoom, simulated } from './machines.mjs';

const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);

/** As {@link simulate} wants a node. */
export class PackedNode {
  #machine;
  #placement;
  #ground;
  #state;
  #requests = new Map();

  /** @param options of a manager, beside what the machine says */
  static async of(machine, options) {
    return new PackedNode(machine, await simulated(machine), options);
  }

  constructor(machine, { topology, reserved, devices }, options) {
    const config = parseConfig({ topology, reservedSystemCPUs: reserved, ...options });
    const resource = { name: GPU, devices: parseDevices(devices, topology, GPU) };
    const present = cpusNow(topology);
    this.#machine = machine;
    this.#placement = config.placement;
    this.#ground = { topology, present, resources: new Map([[GPU, resource]]), providers: [] };
    this.#state = firstState(config, topology, present);
  }

  admit(asked, uid) {
    const decision = decide(this.#question(asked, uid));
    if (!decision.admitted) return { admitted: false, ...this.#rejection(asked) };
    this.#state = decision.next();
    return { admitted: true, moves: 0, distance: this.#distance(decision.pod) };
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

  #question(asked, uid) {
    return {
      ...this.#ground,
      ...{ state: this.#state, request: this.#request(asked), uid, trialUid: uid },
      ...{ owner: PERSISTENT_OWNER, now: NEVER, dryRun: true },
    };
  }

  // The same object for the same sizes.
  #request({ cpu, memory, gpu }) {
    const key = `${cpu} ${memory} ${gpu}`;
    let request = this.#requests.get(key);
    if (request === undefined) {
      const limits = { cpu, memory, [GPU]: gpu };
      request = parseAdmit({ containers: [{ name: 'app', limits }] }, NO_OPTIONS, this.#placement);
      this.#requests.set(key, request);
    }
    return request;
  }

  #rejection(asked) {
    const isFragmented = hasRoom(this.#free(), asked);
    return {
      isFragmented,
      isPinned: isFragmented && !this.#besidePinned().some((left) => hasRoom(left, asked)),
    };
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

  /** What each node would have, had it no grants but those with GPUs, which stay where these are. */
  #besidePinned() {
    const left = capacities(this.#machine);
    for (const { containers } of this.#state.pods) {
      const [{ devices, request }] = containers;
      const gpus = devices[GPU] ?? [];
      if (gpus.length === 0) continue;
      const node = left[gpus[0].nodes[0]];
      node.cpu -= request.cpu / 1000;
      node.memory -= request.memory;
      node.gpu -= gpus.length;
    }
    return left;
  }

  /** The mean from the nodes of a pod's CPUs to those of its memory and its devices. */
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
