// needs: agents
// numalign agent --no-listen, which `numalign setup` installs as a service.
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { openManager } from 'numalign';
import { affinity } from 'numalign/diagnostics';
import { describe, expect, it, onTestFinished } from 'vitest';
import { Agent } from '../../../test/support/agent.js';
import { makeStateDir } from '../../../test/support/state-dir.js';
import { setupFiles } from '../lib/systemd/setup-files.js';
import { MAIN, newFolder, numalign, start, until } from './numalign.js';
import { canRunUnits, runUnit } from './systemd.js';

/** A process that is a shared member of a folder, and knows nothing of it. */
async function newMember(stateDir: string): Promise<number> {
  const { pid } = sleeper();
  const manager = await openManager({ stateDir, sharedMember: false });
  await manager.addSharedMember({ pid: pid! });
  manager.close();
  return pid!;
}

function sleeper() {
  const child = spawn('sleep', ['1000'], { stdio: 'ignore' });
  onTestFinished(() => void child.kill('SIGKILL'));
  return child;
}

/** Kills a process with a grant. `during`: called before. */
async function killOne(stateDir: string, during = () => {}): Promise<void> {
  const owner = new Agent();
  await owner.tell('open', { stateDir });
  await owner.tell('acquire', { cpu: 1 });
  during();
  await owner.kill();
}

describe('numalign agent --no-listen', () => {
  it('gives CPUs back whose owner was killed', async () => {
    const stateDir = makeStateDir();
    const member = await newMember(stateDir);
    const agent = start(['agent', '--no-listen', '--output', 'json', '--state-dir', stateDir]);
    await until(() => agent.output.stdout.endsWith('\n'), 'the line of an agent that watches');
    expect(JSON.parse(agent.output.stdout)).toEqual({ pid: agent.process.pid, stateDir, scope: 'private' });
    const cpus = () => String(affinity(member));
    await killOne(stateDir, () => expect(cpus()).not.toBe('0-1'));
    await until(() => cpus() === '0-1', 'the CPUs of the member');
    agent.process.kill('SIGTERM');
    expect(await agent.ended).toMatchObject({ code: 0, stderr: '' });
  });

  it('leaves the choice of settings to others, and waits for them', async () => {
    const stateDir = join(newFolder(), 'state');
    const agent = start(['agent', '--no-listen', '--state-dir', stateDir]);
    await new Promise((resolve) => setTimeout(resolve, 500));
    expect(existsSync(stateDir)).toBe(false);
    expect((await numalign(['configure', '--reserved', '0', '--state-dir', stateDir])).code).toBe(0);
    await until(() => agent.output.stdout === `watching ${stateDir} (private)\n`, 'the agent');
  });

  it('has no port', async () => {
    const { code, stderr } = await numalign(['agent', '--no-listen', '--port', '0']);
    expect([code, stderr]).toEqual([2, expect.stringContaining('cannot be used with option')]);
  });
});

describe.runIf(canRunUnits)('the unit of the agent', () => {
  // What systemd has while it is active.
  const boot = `mount -t tmpfs none /run/systemd && mkdir /run/systemd/system /run/systemd/units &&
    eval "$0" && exec "$@"`;
  const told = async (...words: string[]) => {
    const program = ['unshare', '--mount', 'sh', '-c', boot, ...words, process.execPath, MAIN] as const;
    const { stdout } = await numalign(['doctor', '--output', 'json'], { program: [...program] });
    return JSON.parse(stdout).findings.find(({ check }: { check: string }) => check === 'agent');
  };

  it('is known to numalign doctor while it is active, and recommended else', async () => {
    const link = 'ln -s 0123 /run/systemd/units/invocation:numalign-agent.service';
    expect(await told(link)).toMatchObject({ status: 'ok', advice: null });
    expect(await told('true')).toMatchObject({
      status: 'warning',
      advice: '`numalign setup`, as root, installs an agent',
    });
  });

  it('runs again, however often it has ended, and frees what was left meanwhile', async () => {
    const stateDir = makeStateDir();
    const setup = { launcher: { node: process.execPath, main: MAIN }, settings: undefined, stateDir };
    const unit = setupFiles({ ...setup, hasForeignGroup: false }).find(({ path }) => path.includes('agent'))!;
    const log = join(newFolder(), 'starts');
    // In a hurry, to its tenth start: systemd gives up at the sixth within ten seconds.
    const text = unit.body
      .replace('RestartSec=2', 'RestartSec=10ms')
      .replace(
        /^ExecStart=(.*)$/m,
        `ExecStartPre=/bin/sh -c "echo >> ${log}; [ $$(wc -l < ${log}) -ge 10 ]"\nExecStart=$1 --state-dir ${stateDir}`,
      );
    await killOne(stateDir);
    // A view frees nothing. The agent is in another pid namespace, from which it moves no process.
    const view = await openManager({ stateDir, readOnly: true });
    onTestFinished(() => view.close());
    expect(view.grants()).toMatchObject([{ alive: false }]);
    runUnit('numalign-agent.service', text);
    await until(() => view.grants().length === 0, 'the end of the grant');
    await killOne(stateDir);
    await until(() => view.grants().length === 0, 'the end of the other grant');
  });
});
