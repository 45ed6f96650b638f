// needs: restores
// A state folder in memory, whose note says that the files in owners/ are all there: no CPU is
// granted twice, whatever other programs do with the folder.
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { Agent } from '../support/agent.js';
import { makeStateDir } from '../support/state-dir.js';
import { stopWithoutLock } from '../support/stop.js';

const MACHINE = 'core:4 pu:1';

async function opener(stateDir: string, simulate: string | undefined = MACHINE): Promise<Agent> {
  const agent = new Agent();
  await agent.tell('open', { stateDir, ...(simulate && { simulate }) });
  return agent;
}

/** Acquires CPUs of the 4. Returns the code of what refused them. */
async function refusalOf(agent: Agent, cpu: number): Promise<string | undefined> {
  return (await agent.ask('acquire', { cpu })).error?.code;
}

const shell = (script: string, ...args: string[]) => execFileSync('sh', ['-ec', script, 'sh', ...args]);

/** Has a process find all owners, and so note that their files are there. */
async function note(stateDir: string, simulate?: string): Promise<void> {
  const agent = await opener(stateDir, simulate);
  const { value } = await agent.ask('acquire', { cpu: 1 });
  if (value) await agent.tell('release', value);
  await agent.tell('close');
}

/** An owner whose child holds its lock, and the file of that lock. */
async function ownerWithChild(stateDir: string) {
  const owner = await opener(stateDir, '');
  const { uid } = await owner.tell('acquire', { cpu: 1 });
  const child = await owner.tell('spawn', ['sleep', '60']);
  onTestFinished(() => void process.kill(child));
  const [name] = readdirSync(join(stateDir, 'owners'));
  return { owner, uid, file: join(stateDir, 'owners', name!) };
}

/** The grants that a new process finds in force. */
async function inForce(stateDir: string): Promise<string[]> {
  const next = await opener(stateDir, '');
  await next.ask('acquire', { cpu: 1 });
  return (await next.tell('grants')).map(({ uid }: { uid: string }) => uid);
}

describe('the note on a folder in memory', () => {
  it('does not hide a child that holds the lock of a file in whose place its parent wrote another', async () => {
    const stateDir = makeStateDir('/dev/shm');
    const { owner, uid, file } = await ownerWithChild(stateDir);
    rmSync(file);
    await expect.poll(() => existsSync(file)).toBe(true);
    await note(stateDir, '');
    await owner.kill();
    expect(await inForce(stateDir)).toContain(uid);
  });

  it('does not hide such a child if its parent wrote the file again in a noted folder', async () => {
    const stateDir = makeStateDir('/dev/shm');
    const { owner, uid, file } = await ownerWithChild(stateDir);
    await note(stateDir, '');
    renameSync(stateDir, `${stateDir}.away`);
    await expect.poll(() => existsSync(file)).toBe(true);
    const { ino } = statSync(join(`${stateDir}.away`, 'owners', basename(file)));
    shell('mv -T "$1" "$1.new"; mv -T "$1.away" "$1"', stateDir);
    await expect.poll(() => statSync(file).ino).not.toBe(ino);
    await owner.kill();
    expect(await inForce(stateDir)).toContain(uid);
  });

  it('does not hide a stopped owner of the folder that was in its place', async () => {
    const stateDir = makeStateDir('/dev/shm');
    const first = await opener(stateDir);
    await first.tell('release', await first.tell('acquire', { cpu: 1 }));
    await first.kill();
    await note(stateDir);
    renameSync(stateDir, `${stateDir}.away`);
    const owner = await opener(stateDir);
    await owner.tell('acquire', { cpu: 2 });
    await stopWithoutLock(owner, stateDir);
    shell('mv -T "$1" "$1.new"; mv -T "$1.away" "$1"', stateDir);
    expect(await refusalOf(await opener(stateDir), 3)).toBe('ERR_STATE_CORRUPT');
  });

  it('does not hide what a stopped owner holds whose file was overwritten with an earlier one', async () => {
    const stateDir = makeStateDir('/dev/shm');
    const owner = await opener(stateDir);
    await owner.tell('acquire', { cpu: 1 });
    await note(stateDir);
    shell('cp -a "$1" "$1.backup"', stateDir);
    await owner.tell('acquire', { cpu: 2 });
    await stopWithoutLock(owner, stateDir);
    // The names in owners/ stay, and so does the folder's time.
    shell('cd "$1"; rm state.* lock; cp "$1.backup"/owners/* owners; cp "$1.backup"/[sl]* .', stateDir);
    expect(await refusalOf(await opener(stateDir), 2)).toBe('ERR_STATE_CORRUPT');
  });
});
