// needs: machine
// The holder of a grant, if not every process can be inspected.
import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { OwnerRecord } from '../../lib/account/pod-assignment.js';
import { childrenOf, isHolder, isStartedBy } from '../../lib/enforcement/members/descent.js';
import { makeStateDir } from '../support/state-dir.js';
import { child } from './members.js';

const UNPRIVILEGED = 65_534;
const ownerWith = (pid: number): OwnerRecord => ({
  kind: 'process',
  uuid: '00000000-0000-4000-8000-000000000000',
  pid,
  command: null,
  cgroup: null,
  unknown: {},
});

describe('the children of a process', () => {
  it('are found while its threads end', async () => {
    const script = `
import subprocess, threading
print(subprocess.Popen(['sleep', '1000']).pid, flush=True)
while True: threading.Thread(target=lambda: None).start()`;
    const parent = child('python3', ['-c', script]);
    const [line] = await once(parent.stdout!, 'data');
    const pid = Number(line);
    onTestFinished(() => void process.kill(pid));
    for (let i = 0; i < 200; i++) expect(childrenOf(parent.pid!)).toEqual([pid]);
  });
});

describe('the holder of a grant', () => {
  it('is no process without its lock open, even with the owner’s pid', () => {
    const { pid } = child('sleep', ['1000']);
    expect(isHolder(ownerWith(pid!), pid!)).toBe(false);
  });

  it('started no process whose parent has only the owner’s pid', async () => {
    const parent = child('sh', ['-c', 'sleep 1000 & echo $!; wait']);
    const [line] = await once(parent.stdout!, 'data');
    onTestFinished(() => void process.kill(Number(line)));
    expect(isStartedBy(ownerWith(parent.pid!), Number(line))).toBe(false);
  });

  it('started the children of a process that has its lock open', async () => {
    const folder = join(makeStateDir(), 'owners');
    mkdirSync(folder, { recursive: true });
    const file = join(folder, ownerWith(0).uuid);
    const parent = child('sh', ['-c', `exec 9>${file}; sleep 1000 9>&- & echo $!; wait`]);
    const [line] = await once(parent.stdout!, 'data');
    onTestFinished(() => void process.kill(Number(line)));
    // The parent handed the grant over, so the record may have another pid.
    expect(isStartedBy(ownerWith(1), Number(line))).toBe(true);
  });

  it.runIf(process.getuid?.() === 0)(
    'is the process with the owner’s pid if its files cannot be inspected',
    () => {
      const { pid } = child('sleep', ['1000']);
      process.seteuid!(UNPRIVILEGED);
      try {
        expect(isHolder(ownerWith(pid!), pid!)).toBe(true);
        expect(isHolder(ownerWith(pid! + 1), pid!)).toBe(false);
      } finally {
        process.seteuid!(0);
      }
    },
  );
});
