// needs: process
// Foreign names and paths, with sequences that steer terminals and forge lines, in a shared state.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openManager } from 'numalign';
import { describe, expect, it, onTestFinished } from 'vitest';
import { decodeMembers, encodeMembers } from '../../../test/torture/state-file.mjs';
import { newFolder, numalign, type Result } from './numalign.js';
import { newFile, pod } from './pods.js';

const CONTROLS = '\n\nnumalign: forged\u001b[2J\u009b2J\u2028\u202e\u007f';
const evil = (name: string) => `${name}${CONTROLS}`;

type Json = Record<string, unknown>;

/** Writes a state with changed members and a correct checksum. */
function rewrite(file: string, change: (state: Json) => Json): void {
  writeFileSync(file, encodeMembers(change(decodeMembers(readFileSync(file)))));
}

function hostilePod(pod: Json): Json {
  const [container] = pod.containers as [Json];
  const devices = { [evil('example.com/nic')]: [{ id: evil('eth0'), nodes: null }] };
  const memory = [{ nodes: [0], type: evil('hugepages'), bytes: 4096 }];
  return {
    ...pod,
    name: evil('web'),
    policy: evil('policy'),
    scope: evil('scope'),
    owner: { ...(pod.owner as Json), command: evil('command') },
    admittedAt: evil('2026-01-01T00:00:00.000Z'),
    containers: [{ ...container, name: evil('main'), devices, memory }],
  };
}

/** A state folder with a grant and a member, both of hostile names. */
async function hostileState(): Promise<string> {
  const folder = newFolder();
  const stateDir = join(folder, 'state');
  const manager = await openManager({ stateDir, cgroupRoot: null });
  await manager.acquire({ cpu: 1, name: 'web', owner: 'persistent' });
  const program = join(folder, `sh${CONTROLS}`);
  copyFileSync('/bin/sh', program);
  const child = spawn(program, ['-c', 'echo; cat'], { stdio: ['pipe', 'pipe', 'inherit'] });
  onTestFinished(() => void child.stdin.end());
  await once(child.stdout, 'data');
  await manager.addSharedMember({ pid: child.pid! });
  manager.close();
  rewrite(join(stateDir, 'state.json'), (state) => ({
    ...state,
    pods: (state.pods as Json[]).map(hostilePod),
    memory: { 0: { [evil('hugepages')]: 4096 } },
    lastCpus: [{ name: evil('last'), cpus: '0' }],
  }));
  return stateDir;
}

const flaws = ({ stdout, stderr }: Result) =>
  [...`${stdout}${stderr}`.matchAll(/(?!\n)[\p{C}\p{Zl}\p{Zp}]|^numalign: forged.*$/gmu)].map(
    ([found]) => found,
  );

const COMMANDS = [
  ['status'],
  ['topology'],
  ['doctor'],
  ['plan', '-f', 'POD'],
  ['admit', '-f', 'POD'],
  ['release', 'unknown'],
  ['release', evil('web')],
  ['attach', evil('web'), '999999999'],
  ['run', '--cpus', '1000', '--', 'true'],
  ['run', '--cpus', '1', '--', evil('/no/such')],
  ['configure', '--no-strict'],
  ['state', 'export', '--kubelet', 'FOLDER'],
];

describe('hostile names', () => {
  for (const [name, ...args] of COMMANDS) {
    for (const output of ['text', 'json']) {
      it(`never reach a terminal in ${output} of numalign ${name} ${/^[\w -]*/.exec(args.join(' '))![0].trim()}`, async () => {
        const stateDir = await hostileState();
        const words = args.map(
          (word) => ({ POD: newFile(pod('big', 1000)), FOLDER: newFolder() })[word] ?? word,
        );
        const result = await numalign([name!, '--state-dir', stateDir, '--output', output, ...words]);
        expect({ flaws: flaws(result), ...result }).toMatchObject({ flaws: [] });
      });
    }
  }

  it('are whole in JSON, with their controls escaped', async () => {
    const { stdout } = await numalign(['status', '--state-dir', await hostileState(), '--output', 'json']);
    const { grants } = JSON.parse(stdout) as { grants: { name: string }[] };
    expect(grants[0]!.name).toBe(evil('web'));
    expect(stdout).toContain('\\u001b[2J\\u009b2J\\u2028\\u202e\\u007f');
  });
});
