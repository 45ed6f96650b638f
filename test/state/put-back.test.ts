// needs: restores
// A state folder in which another program puts back, removes or replaces files while owners live:
// no CPU is granted twice.
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { CpuSet } from '../../lib/index.js';
import { Agent } from '../support/agent.js';
import { firstAndAnother } from '../support/budget.mjs';
import { makeStateDir } from '../support/state-dir.js';
import { stateBefore } from '../support/state-text.js';
import { stopWithoutLock } from '../support/stop.js';
import { readHighest, writeHighest } from '../torture/state-file.mjs';

const MACHINE = 'core:8 pu:1';
const STATE = 'state.json';
const isRoot = process.getuid?.() === 0;

interface Held {
  readonly agent: Agent;
  readonly uid: string;
  readonly cpus: CpuSet;
}

async function opener(stateDir: string, prefix: string[] = []): Promise<Agent> {
  const agent = new Agent(prefix);
  await agent.tell('open', { stateDir, simulate: MACHINE });
  return agent;
}

async function acquire(agent: Agent, options: object): Promise<Held> {
  const { uid, cpus } = await agent.tell('acquire', options);
  return { agent, uid, cpus: CpuSet.parse(cpus) };
}

const idsOf = async (agent: Agent) => (await agent.tell('grants')).map(({ uid }: { uid: string }) => uid);

/** Grants everything that is left: none of it belongs to an owner. */
async function expectNoDoubleGrant(next: Agent, ...held: readonly Held[]): Promise<void> {
  const taken = held.reduce((all, { cpus }) => all.union(cpus), CpuSet.EMPTY);
  const { cpus } = await acquire(next, { cpu: 7 - taken.size });
  expect(cpus.intersects(taken)).toBe(false);
  expect(await idsOf(next)).toEqual(expect.arrayContaining(held.map(({ uid }) => uid)));
}

function putBack(stateDir: string): void {
  writeFileSync(join(stateDir, STATE), stateBefore(stateDir));
}

describe('the generation before, put back,', () => {
  it('gives an opener nothing that a living process with a closed manager holds', async () => {
    const stateDir = makeStateDir();
    const held = await acquire(await opener(stateDir), { cpu: 3 });
    await held.agent.tell('close');
    putBack(stateDir);
    await expectNoDoubleGrant(await opener(stateDir), held);
  });

  it('gives an opener nothing that a living process with an open manager holds and keeps', async () => {
    const stateDir = makeStateDir();
    const held = await acquire(await opener(stateDir), { cpu: 3 });
    putBack(stateDir);
    const next = await opener(stateDir);
    await expectNoDoubleGrant(next, held);
    expect(await idsOf(held.agent)).toEqual(await idsOf(next));
  });

  it('gives nothing to a process that has not read the state since', async () => {
    const stateDir = makeStateDir();
    const late = await opener(stateDir);
    const agent = await opener(stateDir);
    const held = [
      await acquire(agent, { cpu: 1 }),
      await acquire(agent, { cpu: 1 }),
      await acquire(agent, { cpu: 1 }),
    ];
    putBack(stateDir);
    await expectNoDoubleGrant(late, ...held);
  });

  it('gives nothing of a grant without a process', async () => {
    const stateDir = makeStateDir();
    const held = await acquire(await opener(stateDir), { cpu: 3, owner: 'persistent' });
    await held.agent.kill();
    putBack(stateDir);
    await expectNoDoubleGrant(await opener(stateDir), held);
  });

  it('takes nothing back that a living process got by a resize', async () => {
    const stateDir = makeStateDir();
    const { agent, uid } = await acquire(await opener(stateDir), { cpu: 2 });
    const { cpus } = await agent.tell('resize', { uid, cpu: 4 });
    await agent.tell('close');
    putBack(stateDir);
    await expectNoDoubleGrant(await opener(stateDir), { agent, uid, cpus: CpuSet.parse(cpus) });
  });

  it('does not keep a process from a resize that it announced, before which nothing is granted', async () => {
    const stateDir = makeStateDir();
    const { agent, uid, cpus } = await acquire(await opener(stateDir), { cpu: 2 });
    const backup = join(makeStateDir(), 'backup');
    cpSync(stateDir, backup, { recursive: true });
    const witness = await opener(stateDir);
    const resized = agent.tell('resize', { uid, cpu: 4, noticeMs: 3_000 });
    await expect.poll(async () => (await witness.tell('grants'))[0].upcoming).toBe('0-3');
    await stopWithoutLock(agent, stateDir);
    const [owner] = readdirSync(join(stateDir, 'owners'));
    for (const name of [STATE, 'lock', join('owners', owner!)])
      copyFileSync(join(backup, name), join(stateDir, name));
    const next = await opener(stateDir);
    expect((await next.ask('acquire', { cpu: 1 })).error?.code).toBe('ERR_STATE_CORRUPT');
    agent.process.kill('SIGCONT');
    const other = await acquire(next, { cpu: 1 });
    const after = CpuSet.parse((await resized).cpus);
    expect([after.size, cpus.isSubsetOf(after), after.intersects(other.cpus)]).toEqual([4, true, false]);
  });

  it('is noticed by an opener even if the record of the highest is lost', async () => {
    const stateDir = makeStateDir();
    const held = await acquire(await opener(stateDir), { cpu: 3 });
    await held.agent.tell('close');
    putBack(stateDir);
    writeHighest(stateDir);
    await expectNoDoubleGrant(await opener(stateDir), held);
  });

  it.each([
    ['a number that nothing has led to', '0999999999999999\n'],
    ['a number that leaves no room', '9999999999999999\n'],
    ['no number', 'x'.repeat(100_000)],
    ['nothing', ''],
  ])('may have %s as its record of the highest, and grants continue', async (_, text) => {
    const stateDir = makeStateDir();
    const held = await acquire(await opener(stateDir), { cpu: 3 });
    writeFileSync(join(stateDir, 'lock'), text);
    await expectNoDoubleGrant(await opener(stateDir), held);
  });

  it('does not come back: generations go on above the highest', async () => {
    const stateDir = makeStateDir();
    const { agent } = await acquire(await opener(stateDir), { cpu: 1 });
    const before = readHighest(stateDir);
    await agent.kill();
    for (const name of readdirSync(stateDir)) if (name.startsWith('state')) rmSync(join(stateDir, name));
    await acquire(await opener(stateDir), { cpu: 1 });
    expect(readHighest(stateDir)).toBeGreaterThan(before);
  });
});

describe('an owner whose file was removed', () => {
  const all: [string, (stateDir: string) => void][] = [
    ['alone', (stateDir) => removed(join(stateDir, 'owners'))],
    ['with all that is in the folder', emptied],
    ['with the folder', removed],
    ['as the folder was moved away', (stateDir) => renameSync(stateDir, `${stateDir}.away`)],
  ];
  const removals = firstAndAnother(all);

  it.each(removals)('%s keeps its grants, while its manager is open', async (_, remove) => {
    const stateDir = makeStateDir();
    const held = await acquire(await opener(stateDir), { cpu: 3 });
    remove(stateDir);
    const next = await opener(stateDir);
    await expectNoDoubleGrant(next, held);
    await held.agent.tell('release', { uid: held.uid });
    expect(await idsOf(next)).not.toContain(held.uid);
  });

  it.each(removals)(
    '%s keeps its grants, while it lives, though its manager is closed',
    async (_, remove) => {
      const stateDir = makeStateDir();
      const held = await acquire(await opener(stateDir), { cpu: 3 });
      await held.agent.tell('close');
      remove(stateDir);
      await expectNoDoubleGrant(await opener(stateDir), held);
    },
  );

  it.each(removals)('%s keeps its grants from processes that had the folder open', async (_, remove) => {
    const stateDir = makeStateDir();
    const other = await opener(stateDir);
    const held = await acquire(await opener(stateDir), { cpu: 3 });
    remove(stateDir);
    await expectNoDoubleGrant(other, held);
  });

  it.each(removals.slice(1))('%s blocks all grants while it cannot answer', async (_, remove) => {
    const stateDir = makeStateDir();
    const held = await acquire(await opener(stateDir), { cpu: 3 });
    held.agent.process.kill('SIGSTOP');
    remove(stateDir);
    const next = new Agent();
    const { error } = await next.ask('open', { stateDir, simulate: MACHINE });
    expect(error?.code).toBe('ERR_STATE_CORRUPT');
    expect(error?.message).toContain('its file was removed');
    held.agent.process.kill('SIGCONT');
    await expectNoDoubleGrant(await opener(stateDir), held);
  });

  it('blocks no grant once it has ended', async () => {
    const stateDir = makeStateDir();
    const held = await acquire(await opener(stateDir), { cpu: 3 });
    held.agent.process.kill('SIGSTOP');
    emptied(stateDir);
    await held.agent.kill();
    await acquire(await opener(stateDir), { cpu: 7 });
  });

  it('keeps its grants if an earlier copy is put in the folder’s place', async () => {
    const stateDir = makeStateDir();
    const agent = await opener(stateDir);
    const copy = `${stateDir}.copy`;
    cpSync(stateDir, copy, { recursive: true, preserveTimestamps: true });
    const held = await acquire(agent, { cpu: 3 });
    agent.process.kill('SIGSTOP');
    renameSync(stateDir, `${stateDir}.away`);
    renameSync(copy, stateDir);
    agent.process.kill('SIGCONT');
    await expectNoDoubleGrant(await opener(stateDir), held);
  });

  it('is no owner of another folder', async () => {
    await acquire(await opener(makeStateDir()), { cpu: 3 });
    const stateDir = makeStateDir();
    mkdirSync(stateDir, { mode: 0o700 });
    await acquire(await opener(stateDir), { cpu: 7 });
  });
});

// Its owner may write there again before all of it is removed.
function removed(folder: string): void {
  try {
    rmSync(folder, { recursive: true });
  } catch (error) {
    expect((error as NodeJS.ErrnoException).code).toBe('ENOTEMPTY');
  }
}

function emptied(stateDir: string): void {
  for (const name of readdirSync(stateDir)) removed(join(stateDir, name));
}

describe.runIf(isRoot)('a process that sees another boot id', () => {
  /** Like systemd-nspawn, which mounts one over the kernel's. */
  function elsewhere(stateDir: string): string[] {
    const file = join(dirname(stateDir), 'boot_id');
    writeFileSync(file, '01234567-89ab-4cde-8f01-23456789abcd\n');
    const script = `mount --bind ${file} /proc/sys/kernel/random/boot_id && exec "$0" "$@"`;
    return ['unshare', '--mount', 'sh', '-c', script];
  }

  it('gets nothing that a living process holds', async () => {
    const stateDir = makeStateDir();
    const held = await acquire(await opener(stateDir), { cpu: 3 });
    await expectNoDoubleGrant(await opener(stateDir, elsewhere(stateDir)), held);
  });

  it('has others keep their grants when it commits', async () => {
    const stateDir = makeStateDir();
    const held = await acquire(await opener(stateDir), { cpu: 3 });
    const other = await acquire(await opener(stateDir, elsewhere(stateDir)), { cpu: 1, owner: 'persistent' });
    await expectNoDoubleGrant(await opener(stateDir), held, other);
    expect(await idsOf(held.agent)).toContain(held.uid);
  });

  it('recovers a damaged state with the grants of living processes', async () => {
    const stateDir = makeStateDir();
    const held = await acquire(await opener(stateDir), { cpu: 3 });
    const persistent = await acquire(held.agent, { cpu: 1, owner: 'persistent' });
    writeFileSync(join(stateDir, STATE), 'nonsense');
    await expectNoDoubleGrant(await opener(stateDir, elsewhere(stateDir)), held, persistent);
  });

  it('keeps persistent grants in a folder in memory, which does not outlive a boot', async () => {
    const stateDir = makeStateDir('/dev/shm');
    const held = await acquire(await opener(stateDir), { cpu: 3, owner: 'persistent' });
    await held.agent.kill();
    await expectNoDoubleGrant(await opener(stateDir, elsewhere(stateDir)), held);
  });
});

describe.runIf(isRoot)('a folder that is open by two paths', () => {
  it('keeps the grants of both after a garbage collection', async () => {
    const stateDir = makeStateDir();
    const other = join(tmpdir(), `numalign-test-other-${process.pid}`);
    mkdirSync(other);
    onTestFinished(() => rmSync(other, { recursive: true }));
    mkdirSync(stateDir, { mode: 0o700 });
    const script = `mount --bind ${stateDir} ${other} && exec "$0" --expose-gc "$1"`;
    const agent = new Agent(['unshare', '--mount', 'sh', '-c', script]);
    await agent.tell('open', { stateDir, simulate: MACHINE });
    const { uid, cpus } = await agent.tell('acquire', { cpu: 3 });
    await agent.tell('close');
    await agent.tell('open', { stateDir: other, simulate: MACHINE });
    await agent.tell('forget', { uid });
    await expectNoDoubleGrant(await opener(stateDir), { agent, uid, cpus: CpuSet.parse(cpus) });
  });
});

describe.runIf(isRoot)('a folder in the upper layer of an overlay', () => {
  it('is used through the overlay only, where the same files have other locks', async () => {
    const base = makeStateDir();
    mkdirSync(base);
    const layers = 'lowerdir=lower,upperdir=$PWD/upper,workdir=work';
    const script = `cd ${base} && mount -t tmpfs none . && cd ${base} && mkdir lower upper work merged &&
      mount -t overlay overlay -o ${layers} merged && cd / && exec "$0" "$@"`;
    const agent = new Agent(['unshare', '--mount', 'sh', '-c', script]);
    await agent.tell('open', { stateDir: join(base, 'merged/state'), simulate: MACHINE });
    await agent.tell('acquire', { cpu: 3 });
    const { error } = await agent.ask('open', { stateDir: join(base, 'upper/state'), simulate: MACHINE });
    expect(error).toMatchObject({
      code: 'ERR_STATE_FOLDER',
      message: expect.stringContaining(`in the upper layer of the overlay ${base}/merged`),
    });
  });
});

describe('a file that was put back over an owner’s', () => {
  it('is rewritten by its process', async () => {
    const stateDir = makeStateDir();
    const agent = await opener(stateDir);
    const first = await acquire(agent, { cpu: 1 });
    const [uuid] = readdirSync(join(stateDir, 'owners'));
    const path = join(stateDir, 'owners', uuid!);
    copyFileSync(path, join(stateDir, 'copy'));
    const second = await acquire(agent, { cpu: 2 });
    putBack(stateDir);
    writeHighest(stateDir);
    copyFileSync(join(stateDir, 'copy'), path);
    await expect.poll(() => readHighest(stateDir)).toBeGreaterThan(0);
    await expectNoDoubleGrant(await opener(stateDir), first, second);
  });
});

describe.runIf(isRoot)('a member whose registration was removed', () => {
  it.each([
    ['alone', (stateDir: string) => removed(join(stateDir, 'members'))],
    ['with all that is in the folder', emptied],
  ])('%s is a member again within seconds, though it does nothing', async (_, remove) => {
    const stateDir = makeStateDir();
    const agent = new Agent();
    await agent.tell('open', { stateDir });
    const members = () =>
      existsSync(join(stateDir, 'members'))
        ? readdirSync(join(stateDir, 'members')).map((name) => name.split('-')[0])
        : [];
    expect(members()).toEqual([`p${agent.process.pid}`]);
    remove(stateDir);
    await expect.poll(members, { timeout: 5000 }).toEqual([`p${agent.process.pid}`]);
  });
});
