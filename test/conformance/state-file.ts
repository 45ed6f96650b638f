// The package's state file, read and rewritten by its description (docs/state-format.md), not by the package.
import { createHash } from 'node:crypto';
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { RecordedHint } from './hint.js';
import type { Holdings, Placement } from './placement.js';
import type { Claim } from './pod.js';

interface StateFile {
  readonly generation: number;
  readonly pods: readonly {
    readonly uid: string;
    readonly containers: readonly { readonly name: string; readonly cpus: string; readonly hint: RecordedHint }[];
  }[];
  readonly [member: string]: unknown;
}

const pathOf = (stateDir: string) => join(stateDir, 'state.json');

function readState(stateDir: string): StateFile {
  return JSON.parse(readFileSync(pathOf(stateDir), 'utf8')) as StateFile;
}

/** What the file says every container has. */
export function readPods(stateDir: string): Placement['pods'] {
  return new Map(
    readState(stateDir).pods.map(({ uid, containers }) => [
      uid,
      Object.fromEntries(
        containers.map(({ name, cpus, hint: { nodes, preferred } }) => [
          name,
          { cpus: cpus === '' ? null : cpus, hint: { nodes, preferred } },
        ]),
      ),
    ]),
  );
}

/** One pod to write: what its containers have and what they are. */
export interface StoredPod {
  readonly uid: string;
  readonly holdings: Holdings;
  readonly claims: readonly Claim[];
  readonly policy: string;
  readonly scope: string;
}

function encodePod({ uid, holdings, claims, policy, scope }: StoredPod) {
  return {
    uid,
    name: uid,
    containers: claims.map(({ name, kind, requests }) => ({
      name,
      kind,
      started: true,
      request: requests,
      cpus: holdings[name]!.cpus ?? '',
      held: '',
      hint: holdings[name]!.hint,
      memory: [],
      devices: {},
      reusable: { cpus: '', memory: [], devices: {} },
    })),
    policy,
    scope,
    options: {},
    owner: { kind: 'persistent', uuid: '', pid: null, command: null },
    enforcement: { level: 'recorded', target: null },
    admittedAt: new Date().toISOString(),
  };
}

/** Puts other pods into the file. REQUIRES: no manager has it open. */
export function writePods(stateDir: string, pods: readonly StoredPod[]): void {
  const { checksum: _, ...state } = readState(stateDir);
  const body = JSON.stringify({ ...state, generation: state.generation + 1, pods: pods.map(encodePod) }).slice(0, -1);
  const checksum = createHash('sha256').update(body).digest('hex');
  // A new file: readers tell versions apart by inode, size and modification time.
  const path = pathOf(stateDir);
  writeFileSync(`${path}.new`, `${body},"checksum":"sha256:${checksum}"}\n`, { mode: 0o600 });
  renameSync(`${path}.new`, path);
}
