// Placements of CPUs, memory and devices, recorded or observed, and the rules that each of them
// keeps.

import type { MachineJson } from '../../lib/entries/topology.js';
import type { DeviceAssignment, MemoryBlock, MemoryTable } from '../../lib/index.js';
import { idsOf } from './cpu-list.js';
import { type Inventory, placeOf } from './devices.js';
import type { RecordedHint } from './hint.js';
import { type Capacity, flawOfMemory, isSameMemory } from './memory.js';
import type { Claim, Whole } from './pod.js';

/** What one container has. */
export interface Holding {
  /** null: it runs in the shared pool. */
  readonly cpus: string | null;
  /** Its own CPUs, those that it shares within its pod, or the shared pool. */
  readonly isolation: 'container' | 'pod' | 'host';
  readonly hint: RecordedHint;
  readonly memory: readonly MemoryBlock[];
  /** By resource. */
  readonly devices: Readonly<Record<string, readonly DeviceAssignment[]>>;
}

/** By container name. */
export type Holdings = Readonly<Record<string, Holding>>;

/** What is booked for a pod as a whole. */
export interface Booking {
  readonly cpus: string;
  readonly memory: readonly MemoryBlock[];
}

/** By uid, of pods that are booked as a whole. */
export type Bookings = ReadonlyMap<string, Booking>;

/** A node at one moment. */
export interface Placement {
  /** By pod uid. */
  readonly pods: ReadonlyMap<string, Holdings>;
  readonly bookings: Bookings;
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
  /** What pods that are booked as a whole must have. */
  readonly wholes: ReadonlyMap<string, Whole>;
  /** Pods of which the devices are not known: upstream finds them when their containers start. */
  readonly withoutDevices: ReadonlySet<string>;
  readonly topologyPolicy: string;
  /** What there is of memory and of devices. */
  readonly capacities: readonly Capacity[];
  readonly inventory: Inventory;
}

export function isSamePods(a: Placement['pods'], b: Placement['pods']): boolean {
  return a.size === b.size && [...a].every(([uid, holdings]) => isSameHoldings(holdings, b.get(uid)));
}

export function isSamePlacement(a: Placement, b: Placement): boolean {
  return (
    isSamePods(a.pods, b.pods) &&
    bookingsText(a.bookings) === bookingsText(b.bookings) &&
    a.sharedPool === b.sharedPool &&
    isSameMemory(a.memory, b.memory)
  );
}

const byText = (a: string, b: string) => (a < b ? -1 : 1);

const blocksText = (memory: readonly MemoryBlock[]) =>
  memory.map(({ nodes, type, bytes }) => JSON.stringify([type, nodes, bytes])).sort(byText);

const bookingsText = (bookings: Bookings) =>
  JSON.stringify(
    [...bookings].map(([uid, { cpus, memory }]) => [uid, cpus, blocksText(memory)] as const).sort(),
  );

function holdingText({ cpus, isolation, hint, memory, devices }: Holding): unknown[] {
  const held = Object.entries(devices).flatMap(([resource, list]) =>
    list.map(({ id, nodes }) => JSON.stringify([resource, id, placeOf(nodes)])),
  );
  return [cpus, isolation, hint.nodes, hint.preferred, blocksText(memory), held.sort(byText)];
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
function flawOfPod(uid: string, holdings: Holdings, booking: Booking | undefined, rules: Rules) {
  const { machine, reserved, claims, topologyPolicy, wholes } = rules;
  const whole = wholes.get(uid);
  if ((booking === undefined) !== (whole === undefined))
    return `${uid} ${booking ? 'is booked as a whole, and' : 'is not booked as a whole, which'} it should not`;
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
    if (!holding) return `${uid} has no container ${name}`;
    const isolation = cpus.size === 0 ? 'host' : count > 0 ? 'container' : 'pod';
    if (holding.isolation !== isolation) return `${uid} ${name} is said to run as ${holding.isolation}`;
    // What is left to those that share, flawOfWhole says.
    if (whole && count === 0) continue;
    if (cpus.size !== count) return `${uid} ${name} has ${cpus.size} CPUs instead of ${count}`;
    for (const cpu of cpus) {
      if (!online.has(cpu)) return `${uid} ${name} has CPU ${cpu}, which the machine has not`;
      if (reserved.has(cpu)) return `${uid} ${name} has the reserved CPU ${cpu}`;
      if (taken.has(cpu)) return `${uid} ${name} has CPU ${cpu} of another container`;
      if (kind !== 'init') taken.add(cpu);
    }
    const mustBePreferred = topologyPolicy === 'restricted' || topologyPolicy === 'single-numa-node';
    if (mustBePreferred && !holding.hint.preferred)
      return `${uid} ${name} has a hint that ${topologyPolicy} rejects`;
  }
  for (const claim of podClaims) {
    const holding = holdings[claim.name]!;
    const isKnown = !rules.withoutDevices.has(uid);
    const flaw =
      (isKnown ? flawOfDevices(claim, holding, takenDevices, rules) : undefined) ??
      (whole ? undefined : flawOfBlocks(claim, holding));
    if (flaw !== undefined) return `${uid} ${claim.name} ${flaw}`;
  }
  return booking && whole && flawOfWhole(uid, holdings, booking, whole, rules);
}

const isRunning = ({ kind }: Pick<Claim, 'kind'>) => kind !== 'init';

type PlacedClaim = Pick<Claim, 'name' | 'kind' | 'cpus'>;

/** The containers that run while one does: for an init container the sidecars before it. */
function besideOf<Some extends PlacedClaim>(claims: readonly Some[], claim: Some): Some[] {
  return isRunning(claim)
    ? claims.filter(isRunning)
    : claims.slice(0, claims.indexOf(claim)).filter(({ kind }) => kind === 'sidecar');
}

/** Of the CPUs that are booked for a pod, those that a container that shares has. */
export function cpusLeftOf(
  all: ReadonlySet<number>,
  claims: readonly PlacedClaim[],
  claim: PlacedClaim,
  cpusOf: (name: string) => string | null | undefined,
): number[] {
  const exclusive = besideOf(claims, claim).filter(({ cpus }) => cpus > 0);
  const taken = new Set(exclusive.flatMap(({ name }) => [...idsOf(cpusOf(name) ?? '')]));
  return [...all].filter((cpu) => !taken.has(cpu));
}

// All is booked once; exclusive containers have theirs, those that share what is left of it.
function flawOfWhole(
  uid: string,
  holdings: Holdings,
  booking: Booking,
  whole: Whole,
  { claims, machine, reserved }: Rules,
): string | undefined {
  const all = idsOf(booking.cpus);
  if (all.size !== whole.cpus) return `${uid} has ${all.size} CPUs booked instead of ${whole.cpus}`;
  const at = machine.columns.indexOf('cpu');
  const online = new Set(machine.cpus.map((row) => row[at]!));
  for (const cpu of all)
    if (reserved.has(cpu) || !online.has(cpu)) return `${uid} has CPU ${cpu} booked, which cannot be had`;
  const booked = Object.fromEntries(booking.memory.map(({ type, bytes }) => [type, bytes] as const));
  const podClaims = claims.get(uid)!;
  const types = new Set([...Object.keys(booked), ...Object.keys(whole.memory)]);
  for (const type of types) {
    if (booked[type] !== whole.memory[type])
      return `${uid} has ${booked[type]} bytes of ${type} booked instead of ${whole.memory[type]}`;
  }
  for (const claim of podClaims) {
    const { name, kind, cpus: count, isShared } = claim;
    const beside = besideOf(podClaims, claim);
    const { cpus, memory } = holdings[name]!;
    const own = idsOf(cpus ?? '');
    const left = cpusLeftOf(all, podClaims, claim, (each) => holdings[each]!.cpus);
    if (count === 0 && own.size !== left.length)
      return `${uid} ${name} shares ${own.size} CPUs, and ${left.length} are left`;
    if (![...own].every((cpu) => all.has(cpu) && (count > 0 || left.includes(cpu))))
      return `${uid} ${name} has CPUs ${cpus} that it should not`;
    // Of those that have ended.
    if (kind === 'init' && memory.length === 0) continue;
    for (const type of types) {
      const others = beside.reduce((sum, each) => sum + (each.memory[type] ?? 0), 0);
      const bytes = isShared ? booked[type]! - others : (claim.memory[type] ?? 0);
      const has = memory.find((block) => block.type === type)?.bytes ?? 0;
      if (has !== bytes) return `${uid} ${name} has ${has} bytes of ${type} instead of ${bytes}`;
    }
    const nodesOf = (type: string) => booking.memory.find((block) => block.type === type)?.nodes.join();
    if (memory.some(({ type, nodes }) => nodes.join() !== nodesOf(type)))
      return `${uid} ${name} has memory elsewhere than its pod`;
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

/** All memory that is booked, a pod's that is booked as a whole once. */
export const blocksIn = ({ pods, bookings }: Pick<Placement, 'pods' | 'bookings'>): MemoryBlock[] =>
  [...pods].flatMap(
    ([uid, containers]) =>
      bookings.get(uid)?.memory ?? Object.values(containers).flatMap(({ memory }) => memory),
  );

/** The rule that a placement breaks, if any. */
export function flawOf({ pods, bookings, sharedPool, memory }: Placement, rules: Rules): string | undefined {
  const owners = new Map<number, string>();
  const deviceOwners = new Map<string, string>();
  for (const [uid, holdings] of pods) {
    const booking = bookings.get(uid);
    const flaw = flawOfPod(uid, holdings, booking, rules);
    if (flaw) return flaw;
    const own = booking
      ? idsOf(booking.cpus)
      : new Set(Object.values(holdings).flatMap(({ cpus }) => [...idsOf(cpus ?? '')]));
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
  const flaw = flawOfMemory(memory, blocksIn({ pods, bookings }), rules.capacities);
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
