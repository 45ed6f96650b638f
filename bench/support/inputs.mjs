// Inputs: questions on disk, in the format of bench/inputs, with the kubelet's own times if they
// are known. Each is asked in variants, so that no two calls in a row are equal: other CPUs are
// free, hints have nodes in another order, other pods exist.
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isDeepStrictEqual } from 'node:util';
import { gunzipSync } from 'node:zlib';
import { discover, mergeHints } from '../../dist/entries/topology.js';
import { CpuSet, NodeSet, openManager } from '../../dist/index.js';
import { inTurn, randomNumbers, someOf } from './random.mjs';

const VARIANTS = 64;
const MANAGERS = 8;
const OWN = fileURLToPath(new URL('../inputs', import.meta.url));
const recorded = JSON.parse(readFileSync(join(OWN, 'kubelet-times.json'), 'utf8'));
const kubeletTimes = new Map(Object.entries(recorded.ns));

// bench/inputs has all its inputs in one file, one per line.
function ownInputs() {
  const lines = gunzipSync(readFileSync(join(OWN, 'inputs.jsonl.gz')))
    .toString()
    .trim()
    .split('\n');
  return new Map(lines.map((line) => JSON.parse(line)).map(({ name, input }) => [name, () => input]));
}

/** All inputs, or those of another folder with one file each: functions that read them, by name. */
export function inputsIn(folder) {
  if (folder === undefined) return ownInputs();
  if (!existsSync(folder)) throw new Error(`--inputs ${folder}: there is no such folder`);
  const files = readdirSync(folder)
    .sort()
    .filter((file) => /\.json(\.gz)?$/.test(file));
  return new Map(
    files.map((file) => [basename(basename(file, '.gz'), '.json'), () => readInput(join(folder, file))]),
  );
}

function readInput(path) {
  const bytes = readFileSync(path);
  return JSON.parse(path.endsWith('.gz') ? gunzipSync(bytes) : bytes);
}

/** An input of bench/inputs, by its name. */
export const ownInput = (name) => ownInputs().get(name)();

/** The kubelet's time as a multiple of an empty call there; undefined if it was not timed. */
export const kubeletCost = (name) =>
  kubeletTimes.has(name) ? kubeletTimes.get(name) / recorded.emptyCallNs : undefined;

const isOwn = (input) => isDeepStrictEqual(ownInputs().get(input.name)?.(), input);

// Recorded machines do not list their nodes.
function described(topology) {
  const node = topology.columns.indexOf('numa');
  const ids = [...new Set(topology.cpus.map((cpu) => cpu[node]))].sort((a, b) => a - b);
  return { nodes: ids.map((id) => ({ id })), ...topology };
}

const freeSet = ({ available, reserved = '' }) => CpuSet.parse(available).difference(CpuSet.parse(reserved));

// Other CPUs of the machine are free: the same number, some of them exchanged.
function freeSets(input, random) {
  const { topology, reserved = '' } = input;
  const all = CpuSet.from(topology.cpus.map(([cpu]) => cpu)).difference(CpuSet.parse(reserved));
  const free = freeSet(input);
  const taken = all.difference(free).toArray();
  return Array.from({ length: VARIANTS }, () => {
    const swapped = Math.min(8, taken.length, free.size - 1);
    return free
      .difference(CpuSet.from(someOf(free, swapped, random)))
      .union(CpuSet.from(someOf(taken, swapped, random)));
  });
}

async function cpuTake(input, random) {
  const machine = await discover({ json: described(input.topology) });
  const next = inTurn(freeSets(input, random));
  const { count, options } = input;
  const recorded = freeSet(input);
  return {
    call: () => machine.bestFit(next(), count, options),
    same: () => machine.bestFit(recorded, count, options),
  };
}

async function cpuHints(input, random) {
  const machine = await discover({ json: described(input.topology) });
  const next = inTurn(freeSets(input, random));
  const { count } = input;
  const recorded = freeSet(input);
  return {
    call: () => machine.cpuHints({ request: count, available: next() }),
    same: () => machine.cpuHints({ request: count, available: recorded }),
  };
}

function shuffled(list, random) {
  return someOf(list, list.length, random);
}

// Hints in the form of a JavaScript provider. In other variants the nodes have changed places.
async function hintMerge({ policy, numaNodes, distances, providers }, random) {
  const listsOn = (nodes) => {
    const other = new Map(nodes.map((node, i) => [numaNodes[i], node]));
    const hint = ({ nodes, preferred }) => ({
      nodes: nodes === null ? null : NodeSet.from(nodes.map((node) => other.get(node))),
      preferred,
    });
    const lists = (provider) =>
      Object.fromEntries(Object.entries(provider).map(([name, hints]) => [name, hints?.map(hint) ?? null]));
    return providers.map((provider) => provider && lists(provider));
  };
  const variants = Array.from({ length: VARIANTS }, () => listsOn(shuffled(numaNodes, random)));
  const recorded = listsOn(numaNodes);
  const hints = providers
    .flatMap((provider) => Object.values(provider ?? {}))
    .reduce((sum, list) => sum + (list?.length ?? 0), 0);
  const options = { policy, numaNodes, ...(distances && { distances }) };
  const next = inTurn(variants);
  return { call: () => mergeHints(next(), options), same: () => mergeHints(recorded, options), hints };
}

function machineOf({ topology, machine }) {
  return {
    ...topology,
    nodes: machine.nodes.map(({ id, memory, hugepages }, i) => ({
      id,
      distances: machine.distances?.[i] ?? null,
      memory,
      hugepages: hugepages.map(({ sizeKiB, count }) => ({ sizeKiB, count })),
    })),
  };
}

/** A pod of one container. */
export const podOf = (limits, name = 'app') => ({ containers: [{ name, limits }] });

function optionsOf({ config, machine }) {
  const reservedMemory = machine.nodes
    .filter(({ reserved }) => Object.keys(reserved ?? {}).length > 0)
    .map(({ id, reserved }) => ({ numaNode: id, limits: reserved }));
  return {
    cpuManagerPolicy: config.cpuPolicy,
    cpuManagerPolicyOptions: config.cpuPolicyOptions,
    memoryManagerPolicy: config.memoryPolicy,
    reservedSystemCPUs: config.reservedCpus,
    policy: config.topologyPolicy,
    topologyManagerPolicyOptions: config.topologyPolicyOptions,
    scope: config.topologyScope,
    ...(config.placement && { placement: config.placement }),
    ...(reservedMemory.length > 0 && { reservedMemory }),
  };
}

/** A manager of a simulated machine with its own state folder and some grants. */
async function managerOf(topology, { parent = tmpdir(), ...options }, resources, pods) {
  const stateDir = mkdtempSync(join(parent, 'numalign-bench-'));
  let manager;
  const close = () => {
    manager?.close();
    rmSync(stateDir, { recursive: true });
  };
  try {
    manager = await openManager({ topology, stateDir, ...options });
    for (const { name, devices } of resources) manager.registerDevices(name, devices);
    for (const pod of pods) await manager.admit(pod, { owner: 'persistent', policy: 'none' });
  } catch (error) {
    close();
    throw error;
  }
  return { manager, close };
}

const GIB = 2 ** 30;

/**
 * Managers of one machine, each with its own state folder and different grants, so that neither the
 * request nor what is free equals that of the call before.
 * @param pods (random) => the pods of one manager
 */
export async function managersOf(topology, options, resources, pods, random) {
  const all = [];
  const close = () => {
    for (const each of all) each.close();
  };
  try {
    for (let i = 0; i < MANAGERS; i++) all.push(await managerOf(topology, options, resources, pods(random)));
  } catch (error) {
    close();
    throw error;
  }
  return { managers: all.map(({ manager }) => manager), close };
}

async function admit(input, random) {
  const topology = await discover({ json: machineOf(input) });
  const { deviceResources } = input.machine;
  const [{ limits }] = input.pod.containers;
  const cpus = limits.cpu / 1000;
  const others = (random) =>
    Array.from({ length: 1 + random(4) }, (_, i) => podOf({ cpu: 1 + random(3), memory: GIB }, `other-${i}`));
  const of = (pods) =>
    managersOf(topology, { ...optionsOf(input), parent: input.parent }, deviceResources, pods, random);
  const { managers, close } = await of(others);
  // As recorded: nothing is granted yet.
  const { managers: unused, close: closeUnused } = await of(() => []);
  const pods = Array.from({ length: VARIANTS }, (_, i) =>
    podOf({ ...limits, cpu: cpus + (i % 3), memory: limits.memory + (i % 5) * GIB }),
  );
  const [nextManager, nextUnused, nextPod] = [inTurn(managers), inTurn(unused), inTurn(pods)];
  const pod = podOf({ ...limits, cpu: cpus });
  // Earlier builds cannot do that.
  const canPrepare = managers.every((manager) => manager.prepare !== undefined);
  const prepared =
    canPrepare && inTurn(managers.map((manager) => inTurn(pods.map((each) => manager.prepare(each)))));
  const ask = input.checkpoints
    ? async (manager, what) => {
        const { uid } = await manager.admit(what, { owner: 'persistent' });
        await manager.release(uid);
      }
    : (manager, what) => manager.plan(what);
  return {
    call: () => ask(nextManager(), nextPod()),
    same: () => ask(nextUnused(), pod),
    again: prepared ? () => prepared()().plan() : undefined,
    close() {
      closeUnused();
      close();
    },
  };
}

const KINDS = new Map(
  Object.entries({ 'cpu-take': cpuTake, 'cpu-hints': cpuHints, 'hint-merge': hintMerge, admit }),
);

/**
 * What an input asks, as a function to call repeatedly. `close`, if there is something to release;
 * `hints`, if they were packed one by one; `kubelet`, if it was timed on this input: its `cost`,
 * and the `call` that asks the input as recorded; `again`, if pods are planned: the same pods,
 * prepared.
 */
export async function prepared(input, seed = 1) {
  const kind = KINDS.get(input.bench);
  if (!kind) throw new Error(`"bench" is one of ${[...KINDS.keys()].join(', ')}, not ${input.bench}`);
  const { call, same, close = () => {}, hints, again } = await kind(input, randomNumbers(seed));
  const cost = isOwn(input) ? kubeletCost(input.name) : undefined;
  return { call, close, hints, again, ...(cost !== undefined && { kubelet: { cost, call: same } }) };
}
