// needs: agents
// Real processes with a unique name.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, copyFileSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { namedProcesses } from '../../lib/processes/named-processes.js';
import { canBeStranger } from '../support/strangers.js';

const NAME = `named-${process.pid}`;

/** Starts a program of that name, which has said a line when it runs; its pid. */
async function start(program: string, wrapper: readonly string[] = []): Promise<number> {
  // Without a process of its own, which has this name until it executes another program.
  const [file, ...args] = [...wrapper, program, '-c', 'echo started; read line'];
  const child = spawn(file!, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  onTestFinished(async () => {
    child.stdin.end();
    if (child.exitCode === null) await once(child, 'exit');
  });
  await once(child.stdout, 'data');
  return child.pid!;
}

function shellNamed(): string {
  const folder = mkdtempSync(join(tmpdir(), 'numalign-test-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  chmodSync(folder, 0o755);
  const file = join(folder, NAME);
  copyFileSync('/bin/sh', file);
  return file;
}

const found = () => [...namedProcesses([NAME])].map(({ pid }) => pid);

describe.runIf(canBeStranger)('processes looked for by name', () => {
  it('are root’s, and another user’s of the same name are not found', async () => {
    const file = shellNamed();
    const roots = await start(file);
    await start(file, ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups']);
    expect(found()).toEqual([roots]);
  });

  it('are not found if another user has become root only in its own user namespace', async () => {
    const stranger = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups'];
    await start(shellNamed(), [...stranger, 'unshare', '-r']);
    expect(found()).toEqual([]);
  });

  it('are not found if a user’s link to a setuid program has the name', async () => {
    const file = shellNamed();
    chmodSync(file, 0o4755);
    const link = join(mkdtempSync(join(tmpdir(), 'numalign-test-')), NAME);
    onTestFinished(() => rmSync(join(link, '..'), { recursive: true }));
    symlinkSync(file, link);
    await start(link);
    expect(found()).toEqual([]);
  });
});
