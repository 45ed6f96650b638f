// Who has which CPUs, memory and devices, as recorded or as observed, and the rules that every
// placement keeps.

import type { MachineJson } from '../../lib/entries/topology.js';
import type { DeviceAssignment, MemoryBlock, MemoryTable } from '../../lib/index.js';
import { idsOf } from './cpu-list.js';
import { type Inventory, placeOf } from './devices.js';
import type { RecordedHint } from './hint.js';
import { type Capacity, flawOfMemory, isSameMemory } from './memory.js';
import type { Claim } from './pod.js';

/** What one container has. */
export interface Holding {
  /** null: it runs in the shared pool. */
  readonly cpus: string | null;
  readonly hint: RecordedHint;
  readonly memory: readonly MemoryBlock[];
  /** By resource. */
  readonly devices: Readonly<Record<string, readonly DeviceAssignment[]>>;
}

/** By container name. */
export type Holdings = Readonly<Record<string, Holding>>;

/** A node at one moment. */
export interface Placement {
  /** By pod uid. */
  readonly pods: ReadonlyMap<string, Holdings>;
  readonly sharedPool: string;
  /** The account of the machine's memory. */
  readonly memory: readonly MemoryTable[];
}

/** What a placement is judged by. */
export interface Rules {
  readonly machine: MachineJson;
  readonly reserved: ReadonlySet<number>;
  /** The reserved CPUs are kept out of the shared pool too. */
  readonly isStrict: boolean;
  /** The pods' containers, in order of admission. */
  readonly claims: ReadonlyMap<string, readonly Claim[]>;
  readonly topologyPolicy: string;
  /** What there is of memory and of devices. */
  readonly capacities: readonly Capacity[];
  readonly inventory: Inventory;
}

export function isSamePods(a: Placement['pods'], b: Placement['pods']): boolean {
  return a.size === b.size && [...a].every(([uid, holdings]) => isSameHoldings(holdings, b.get(uid)));
}

export function isSamePlacement(a: Placement, b: Placement): boolean {
  return isSamePods(a.pods, b.pods) && a.sharedPool === b.sharedPool && isSameMemory(a.memory, b.memory);
}

const byText = (a: string, b: string) => (a < b ? -1 : 1);

function holdingText({ cpus, hint, memory, devices }: Holding): unknown[] {
  const blocks = memory.map(({ nodes, type, bytes }) => JSON.stringify([type, nodes, bytes]));
  const held = Object.entries(devices).flatMap(([resource, list]) =>
    list.map(({ id, nodes }) => JSON.stringify([resource, id, placeOf(nodes)])),
  );
  return [cpus, hint.nodes, hint.preferred, blocks.sort(byText), held.sort(byText)];
}

export function isSameHoldings(a: Holdings, b: Holdings | undefined): boolean {
  const text = (holdings: Holdings) =>
    JSON.stringify(
      Object.keys(holdings)
        .sort()
        .map((name) => [name, holdingText(holdings[name]!)]),
    );
  return b !== undefined && text(a) === text(b);
}

/** All devices of a pod, each as one text. */
function devicesOf(holdings: Holdings): Set<string> {
  const held = Object.values(holdings).flatMap(({ devices }) => Object.entries(devices));
  return new Set(held.flatMap(([resource, list]) => list.map(({ id }) => `${resource} ${id}`)));
}

// Of a pod only an init container that has ended leaves its CPUs and devices to a later container.
function flawOfPod(uid: string, holdings: Holdings, rules: Rules) {
  const { machine, reserved, claims, topologyPolicy } = rules;
  const at = machine.columns.indexOf('cpu');
  const online = new Set(machine.cpus.map((row) => row[at]!));
  const podClaims = claims.get(uid) ?? [];
  if (podClaims.length !== Object.keys(holdings).length) return `${uid} has not its own containers`;
  const taken = new Set<number>();
  const takenDevices = new Set<string>();
  for (const claim of podClaims) {
    const { name, kind, cpus: count } = claim;
    const holding = holdings[name];
    const cpus = idsOf(holding?.cpus ?? '');
    if (!holding || cpus.size !== count) return `${uid} ${name} has ${cpus.size} CPUs instead of ${count}`;
    for (const cpu of cpus) {
      if (!online.has(cpu)) return `${uid} ${name} has CPU ${cpu}, which the machine has not`;
      if (reserved.has(cpu)) return `${uid} ${name} has the reserved CPU ${cpu}`;
      if (taken.has(cpu)) return `${uid} ${name} has CPU ${cpu} of another container`;
      if (kind !== 'init') taken.add(cpu);
    }
    const flaw = flawOfDevices(claim, holding, takenDevices, rules) ?? flawOfBlocks(claim, holding);
    if (flaw !== undefined) return `${uid} ${name} ${flaw}`;
    const mustBePreferred = topologyPolicy === 'restricted' || topologyPolicy === 'single-numa-node';
    if (mustBePreferred && !holding.hint.preferred)
      return `${uid} ${name} has a hint that ${topologyPolicy} rejects`;
  }
  return undefined;
}

function flawOfDevices(
  { kind, requests }: Claim,
  { devices }: Holding,
  taken: Set<string>,
  { inventory }: Rules,
): string | undefined {
  const unknown = Object.keys(devices).find((resource) => !inventory.has(resource));
  if (unknown !== undefined) return `has devices of ${unknown}, which is not registered`;
  for (const [resource, registered] of inventory) {
    const held = devices[resource] ?? [];
    const [ids, count] = [new Set(held.map(({ id }) => id)), requests[resource] ?? 0];
    if (ids.size !== count || held.length !== count) {
      return `has the devices ${JSON.stringify(held)} of ${resource} instead of ${count}`;
    }
    for (const { id, nodes } of held) {
      const known = registered.get(id);
      if (known === undefined || placeOf(known) !== placeOf(nodes)) {
        return `has the device ${id} of ${resource} on NUMA nodes ${nodes}, which is not registered`;
      }
      if (taken.has(`${resource} ${id}`)) return `has the device ${id} of ${resource} of another container`;
      if (kind !== 'init') taken.add(`${resource} ${id}`);
    }
  }
  return undefined;
}

// Init containers have less than they asked for once a later container has it, and nothing once
// they have ended.
function flawOfBlocks({ kind, memory: asked }: Claim, { memory }: Holding): string | undefined {
  const types = memory.map(({ type }) => type);
  if (new Set(types).size < types.length)
    return `has two memory blocks of one type: ${JSON.stringify(memory)}`;
  const isEnded = kind === 'init' && memory.length === 0;
  for (const type of isEnded ? [] : new Set([...types, ...Object.keys(asked)])) {
    const [block, bytes] = [memory.find((each) => each.type === type), asked[type] ?? 0];
    const isRight = kind === 'init' ? block && block.bytes <= bytes : block?.bytes === bytes;
    if (!isRight || bytes === 0) return `has ${block?.bytes ?? 'no'} bytes of ${type} instead of ${bytes}`;
    if (block!.nodes.length === 0) return `has ${type} on no NUMA node`;
  }
  return undefined;
}

/** Which rule a placement breaks, if any. */
export function flawOf({ pods, sharedPool, memory }: Placement, rules: Rules): string | undefined {
  const owners = new Map<number, string>();
  const deviceOwners = new Map<string, string>();
  for (const [uid, holdings] of pods) {
    const flaw = flawOfPod(uid, holdings, rules);
    if (flaw) return flaw;
    const own = new Set(Object.values(holdings).flatMap(({ cpus }) => [...idsOf(cpus ?? '')]));
    for (const cpu of own) {
      if (owners.has(cpu)) return `CPU ${cpu} is both ${owners.get(cpu)}'s and ${uid}'s`;
      owners.set(cpu, uid);
    }
    for (const device of devicesOf(holdings)) {
      if (deviceOwners.has(device))
        return `the device ${device} is both ${deviceOwners.get(device)}'s and ${uid}'s`;
      deviceOwners.set(device, uid);
    }
  }
  const holdings = [...pods.values()].flatMap((containers) => Object.values(containers));
  const blocks = holdings.flatMap((holding) => holding.memory);
  const flaw = flawOfMemory(memory, blocks, rules.capacities);
  if (flaw !== undefined) return flaw;
  const at = rules.machine.columns.indexOf('cpu');
  const shared = rules.machine.cpus
    .map((row) => row[at]!)
    .filter((cpu) => !owners.has(cpu) && !(rules.isStrict && rules.reserved.has(cpu)));
  const pool = idsOf(sharedPool);
  if (pool.size === 0) return 'the shared pool is empty';
  const isRest = pool.size === shared.length && shared.every((cpu) => pool.has(cpu));
  return isRest ? undefined : `the shared pool ${sharedPool} is not what is left`;
}
