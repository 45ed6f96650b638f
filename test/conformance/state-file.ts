// The package's state file, read and rewritten by its description (docs/state-format.md), not by
// the package.
import { randomUUID } from 'node:crypto';
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { MemoryBlock } from '../../lib/index.js';
// Found from where this is compiled to as well.
import { decodeMembers, encodeMembers } from '../../test/torture/state-file.mjs';
import type { BytesByNode } from './memory.js';
import type { Booking, Bookings, Holding, Holdings, Placement } from './placement.js';
import type { Claim, RecordedPod } from './pod.js';

interface StatePod {
  readonly uid: string;
  readonly containers: readonly (Omit<Holding, 'cpus' | 'isolation'> & {
    readonly name: string;
    readonly cpus: string;
    readonly isolation?: 'pod';
  })[];
  readonly booking?: Booking & { readonly shares: readonly (readonly MemoryBlock[])[] };
}

interface StateFile {
  readonly generation: number;
  readonly pods: readonly StatePod[];
  readonly memory: BytesByNode;
  readonly [member: string]: unknown;
}

const pathOf = (stateDir: string) => join(stateDir, 'state.json');

function readState(stateDir: string): StateFile {
  return decodeMembers(readFileSync(pathOf(stateDir))) as StateFile;
}

/** What a state file says. */
export interface StateRecord {
  /** What every container has. */
  readonly pods: Placement['pods'];
  /** What is booked for pods as a whole. */
  readonly bookings: Bookings;
  /** How many bytes are booked of each type of memory, by NUMA node. */
  readonly memory: BytesByNode;
}

export function readRecord(stateDir: string): StateRecord {
  const { pods, memory } = readState(stateDir);
  return { pods: new Map(pods.map(holdingsOf)), bookings: new Map(pods.flatMap(bookingOf)), memory };
}

function holdingsOf({ uid, containers, booking }: StatePod): [uid: string, Holdings] {
  const entries = containers.map(
    ({ name, cpus, isolation, hint: { nodes, preferred }, memory, devices }, i) => [
      name,
      {
        cpus: cpus === '' ? null : cpus,
        isolation: isolation ?? (cpus === '' ? 'host' : 'container'),
        hint: { nodes, preferred },
        memory: booking ? booking.shares[i]! : memory,
        devices,
      },
    ],
  );
  return [uid, Object.fromEntries(entries)];
}

function bookingOf({ uid, booking }: StatePod): [uid: string, Booking][] {
  return booking ? [[uid, { cpus: booking.cpus, memory: booking.memory }]] : [];
}

/** One pod to write: what its containers have and what they are. */
export interface StoredPod {
  readonly uid: string;
  readonly holdings: Holdings;
  readonly booking: Booking | undefined;
  /** What it asks for as a whole. */
  readonly podResources: RecordedPod['podResources'];
  readonly claims: readonly Claim[];
  /** Its containers have started, one after the other. */
  readonly isStarted: boolean;
  readonly policy: string;
  readonly scope: string;
}

function encodePod({ uid, holdings, booking, podResources, claims, isStarted, policy, scope }: StoredPod) {
  const shares = claims.map(({ name }) => holdings[name]!.memory);
  return {
    uid,
    name: uid,
    ...(podResources && { resources: { requests: {}, limits: {}, ...podResources } }),
    ...(booking && { booking: { ...booking, held: '', shares } }),
    containers: claims.map(({ name, kind, requests }, i) => ({
      name,
      kind,
      started: isStarted,
      request: requests,
      cpus: holdings[name]!.cpus ?? '',
      held: '',
      hint: holdings[name]!.hint,
      ...(holdings[name]!.isolation === 'pod' && { isolation: 'pod' }),
      memory: booking ? (i === 0 ? booking.memory : []) : holdings[name]!.memory,
      devices: holdings[name]!.devices,
      reusable: { cpus: i === 0 ? (booking?.cpus ?? '') : '', memory: [], devices: {} },
    })),
    policy,
    scope,
    options: {},
    owner: { kind: 'persistent', uuid: randomUUID(), pid: null, command: null },
    enforcement: { level: 'recorded', target: null },
    admittedAt: new Date().toISOString(),
  };
}

/** Puts other pods into the file, and what is booked for them. REQUIRES: no manager has it open. */
export function writePods(stateDir: string, pods: readonly StoredPod[], memory: BytesByNode): void {
  rewrite(stateDir, (state) => ({ ...state, pods: pods.map(encodePod), memory }));
}

/** Changes what the file says. REQUIRES: no manager has it open. */
export function rewrite(stateDir: string, change: (state: StateFile) => object): void {
  const state = readState(stateDir);
  const text = encodeMembers(change({ ...state, generation: state.generation + 1 }));
  // A new file: readers tell versions apart by inode, size and modification time.
  const path = pathOf(stateDir);
  writeFileSync(`${path}.new`, text, { mode: 0o600 });
  renameSync(`${path}.new`, path);
}
