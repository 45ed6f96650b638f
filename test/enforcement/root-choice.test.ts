// needs: machine
// Root uses a state folder that a group shares: a member of the group can write any record, but not
// choose what root does with its rights.
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { diagnose } from '../../lib/entries/diagnostics.js';
import { openManager } from '../../lib/index.js';
import { ALL, hierarchy, idler, isUsable, ownRoot, ROOT, read, removeAll } from '../cgroups/own-root.js';
import { makeStateDir } from '../support/state-dir.js';
import { canBeStranger } from '../support/strangers.js';
import { opened } from './members.js';
import { agentOf, BOB, CHOICES, choiceFile, sharedFolder } from './users.js';

const RESERVED = { reservedSystemCPUs: String(ALL.first!) };
const VICTIM = `${ROOT}-victim`;
const victim = join(hierarchy?.mount.point ?? '/', VICTIM);

/** A cgroup of another program, with a process. */
function makeVictim(): number {
  mkdirSync(victim);
  onTestFinished(() => removeAll(victim));
  for (const file of ['cpuset.cpus', 'cpuset.mems']) {
    writeFileSync(join(victim, file), readFileSync(join(hierarchy!.mount.point, file), 'utf8'));
  }
  const pid = idler();
  writeFileSync(join(victim, 'cgroup.procs'), String(pid));
  return pid;
}

/** A member of the group records the cgroup of another program as the root. */
async function forged(): Promise<string> {
  const stateDir = sharedFolder();
  const bob = await agentOf(BOB, stateDir, { cgroupRoot: VICTIM, sharedMember: false });
  await bob.tell('close');
  return stateDir;
}

/** For this test nothing is on record of what root has chosen. */
function setChoicesAside(): void {
  const aside = `${CHOICES}.aside`;
  if (existsSync(CHOICES)) renameSync(CHOICES, aside);
  onTestFinished(() => {
    for (const path of [CHOICES, `${CHOICES}.other`]) rmSync(path, { recursive: true, force: true });
    if (existsSync(aside)) renameSync(aside, CHOICES);
  });
}

function made(folder: string): string {
  mkdirSync(folder);
  return folder;
}

describe.runIf(isUsable && canBeStranger)('root with a state that a group can write', () => {
  it('leaves the cgroup alone that a member of the group has recorded', async () => {
    const pid = makeVictim();
    const stateDir = await forged();
    const manager = await opened({ stateDir });
    const grant = await manager.acquire({ cpu: 1 });
    grant.pin();
    expect(grant.enforcement).toBe('members');
    expect(grant.warnings.map(({ message }) => message).join()).toContain(
      `where the cgroup root ${VICTIM} is on record, and root's choice is none`,
    );
    await grant.release();
    expect(read(victim, 'cpuset.cpus')).toBe(String(ALL));
    expect(read(victim, 'cgroup.procs')).toBe(String(pid));
    for (const group of ['shared', grant.uid]) expect(existsSync(join(victim, group))).toBe(false);
  });

  it('says what to do if a request needs cgroups', async () => {
    makeVictim();
    const manager = await opened({ stateDir: await forged() });
    await expect(manager.acquire({ cpu: 1, require: 'cpuset' })).rejects.toMatchObject({
      code: 'ERR_ENFORCEMENT',
      message: expect.stringContaining(
        `\`numalign configure --cgroup-root ${VICTIM} --state-dir ${manager.stateDir}\``,
      ),
    });
  });

  it('finds in the diagnosis which root is on record, which is its own choice, and what to do', async () => {
    makeVictim();
    const stateDir = await forged();
    const { findings } = await diagnose({ stateDir });
    expect(findings.find(({ check }) => check === 'cgroups')).toMatchObject({
      status: 'warning',
      found: expect.stringMatching(`not for root: .*${VICTIM} is on record, and root's choice is none$`),
      advice: expect.stringMatching(`${VICTIM} --state-dir .*; else .* --cgroup-root none --state-dir`),
    });
  });

  it.each([
    ['', () => sharedFolder()],
    [', however long the path of the folder', () => sharedFolder(join(makeStateDir(), 'x'.repeat(250)))],
  ])('uses the root that it names itself, and so do its other processes%s', async (_, folder) => {
    ownRoot();
    const stateDir = folder();
    await opened({ stateDir, cgroupRoot: ROOT, sharedMember: false });
    expect(JSON.parse(readFileSync(choiceFile(stateDir), 'utf8'))).toEqual({ cgroupRoot: ROOT });
    const other = await agentOf(undefined, stateDir);
    const { enforcement } = await other.tell('acquire', { cpu: 1, require: 'cpuset' });
    expect(enforcement).toBe('cpuset');
    await other.tell('close');
  });

  it('uses the root that it configures', async () => {
    ownRoot();
    const stateDir = sharedFolder();
    const first = await opened({ stateDir, cgroupRoot: null });
    await first.configure({ cgroupRoot: ROOT });
    const other = await opened({ stateDir });
    const grant = await other.acquire({ cpu: 1, require: 'cpuset' });
    expect(grant.enforcement).toBe('cpuset');
    await grant.release();
  });

  it('takes no word of a file that others could have made', async () => {
    makeVictim();
    const stateDir = await forged();
    mkdirSync(join(choiceFile(stateDir), '..'), { recursive: true });
    writeFileSync(choiceFile(stateDir), JSON.stringify({ cgroupRoot: VICTIM }));
    chmodSync(join(choiceFile(stateDir), '..'), 0o777);
    onTestFinished(() => chmodSync(join(choiceFile(stateDir), '..'), 0o700));
    const manager = await opened({ stateDir });
    await expect(manager.acquire({ cpu: 1, require: 'cpuset' })).rejects.toMatchObject({
      code: 'ERR_ENFORCEMENT',
    });
  });

  it.each([
    ['a folder that others can write', () => chmodSync(made(CHOICES), 0o777)],
    ['a link', () => symlinkSync(made(`${CHOICES}.other`), CHOICES)],
  ])('refuses to record its choice in %s', async (_, make) => {
    const stateDir = sharedFolder();
    const manager = await opened({ stateDir: sharedFolder() });
    const { cgroupRoot } = manager.settings();
    setChoicesAside();
    make();
    const refusal = {
      code: 'ERR_STATE_FOLDER',
      message: expect.stringContaining(`${CHOICES} cannot hold root's choice`),
      details: { value: CHOICES, valid: expect.any(String) },
    };
    await expect(openManager({ stateDir, cgroupRoot: ROOT, ...RESERVED })).rejects.toMatchObject(refusal);
    await expect(manager.configure({ cgroupRoot: ROOT })).rejects.toMatchObject(refusal);
    expect(manager.settings().cgroupRoot).toBe(cgroupRoot);
  });

  it('needs no choice in a folder that only root can write', async () => {
    ownRoot();
    const stateDir = makeStateDir();
    const first = await openManager({ stateDir, cgroupRoot: ROOT, ...RESERVED });
    first.close();
    const manager = await opened({ stateDir });
    const grant = await manager.acquire({ cpu: 1, require: 'cpuset' });
    expect(existsSync(choiceFile(stateDir))).toBe(false);
    await grant.release();
  });
});
