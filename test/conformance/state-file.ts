// The package's state file, read and rewritten by its description (docs/state-format.md), not by
// the package.
import { randomUUID } from 'node:crypto';
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
// Found from where this is compiled to as well.
import { decodeMembers, encodeMembers } from '../../test/torture/state-file.mjs';
import type { BytesByNode } from './memory.js';
import type { Holding, Holdings, Placement } from './placement.js';
import type { Claim } from './pod.js';

interface StateFile {
  readonly generation: number;
  readonly pods: readonly {
    readonly uid: string;
    readonly containers: readonly (Omit<Holding, 'cpus'> & {
      readonly name: string;
      readonly cpus: string;
    })[];
  }[];
  readonly memory: BytesByNode;
  readonly [member: string]: unknown;
}

const pathOf = (stateDir: string) => join(stateDir, 'state.json');

function readState(stateDir: string): StateFile {
  return decodeMembers(readFileSync(pathOf(stateDir))) as StateFile;
}

/** What the file says every container has. */
export function readPods(stateDir: string): Placement['pods'] {
  return new Map(
    readState(stateDir).pods.map(({ uid, containers }) => [
      uid,
      Object.fromEntries(
        containers.map(({ name, cpus, hint: { nodes, preferred }, memory, devices }) => [
          name,
          { cpus: cpus === '' ? null : cpus, hint: { nodes, preferred }, memory, devices },
        ]),
      ),
    ]),
  );
}

/** How many bytes the file says are booked of each type of memory, by NUMA node. */
export function readMemory(stateDir: string): BytesByNode {
  return readState(stateDir).memory;
}

/** One pod to write: what its containers have and what they are. */
export interface StoredPod {
  readonly uid: string;
  readonly holdings: Holdings;
  readonly claims: readonly Claim[];
  /** Its containers have started, one after the other. */
  readonly isStarted: boolean;
  readonly policy: string;
  readonly scope: string;
}

function encodePod({ uid, holdings, claims, isStarted, policy, scope }: StoredPod) {
  return {
    uid,
    name: uid,
    containers: claims.map(({ name, kind, requests }) => ({
      name,
      kind,
      started: isStarted,
      request: requests,
      cpus: holdings[name]!.cpus ?? '',
      held: '',
      hint: holdings[name]!.hint,
      memory: holdings[name]!.memory,
      devices: holdings[name]!.devices,
      reusable: { cpus: '', memory: [], devices: {} },
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
