// needs: agents
// What holds for every recovery: the next generation, the files that it leaves, and which owners
// count as alive.
import { chmodSync, cpSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { native } from '../../lib/base/native.js';
import { discover } from '../../lib/entries/topology.js';
import { type Manager, openManager } from '../../lib/index.js';
import { isCgroupAlive, mayCgroupBeThere, namespaceOf } from '../../lib/processes/cgroup-owner.js';
import { isLocked, NO_OWNERS } from '../../lib/state/files/owner-claims.js';
import type { FoundState } from '../../lib/state/files/state-files.js';
import type { Checkpoint } from '../../lib/state/format/checkpoint.js';
import { decodeCheckpoint } from '../../lib/state/format/journal.js';
import { decodeOwnerFile } from '../../lib/state/format/owner-file.js';
import { Ledger } from '../../lib/state/ledger.js';
import { type Clues, generationAfter, lastGood } from '../../lib/state/owners/recovery.js';
import { makeStateDir } from '../support/state-dir.js';
import { stateBefore } from '../support/state-text.js';
import { writeHighest } from '../torture/state-file.mjs';

const isRoot = process.getuid?.() === 0;
const UNPRIVILEGED = 65_534;

async function open(stateDir = makeStateDir()): Promise<Manager> {
  const manager = await openManager({ topology: await discover({ synthetic: 'core:8 pu:1' }), stateDir });
  onTestFinished(() => manager.close());
  return manager;
}

const checkpointIn = (stateDir: string, name: string) => decodeCheckpoint(readFileSync(join(stateDir, name)));

/** Like this process, but without root's rights to files. */
function asNobody<T>(look: () => T): T {
  process.seteuid!(UNPRIVILEGED);
  try {
    return look();
  } finally {
    process.seteuid!(0);
  }
}

describe('the generation after a recovery', () => {
  const missing = { kind: 'missing' } as const;
  const NOTHING: Clues = {
    found: missing,
    previous: missing,
    base: undefined,
    owners: NO_OWNERS,
    highest: 0,
  };
  const damaged = (generation: number) => ({ kind: 'damaged', why: '', generation }) as const;
  const goodAt = (generation: number) => ({ generation }) as Checkpoint;
  const ownerAt = (generation: number) => ({ generation }) as NonNullable<Clues['owners']['latest']>;

  it('is above the one after the last good one, which may have been read and is lost', () => {
    expect(generationAfter({ ...NOTHING, base: goodAt(5) })).toBe(7);
  });

  it.each<[string, Partial<Clues>]>([
    ['a damaged state', { found: damaged(9) }],
    ['a damaged state before it', { previous: damaged(9) }],
    ['an owner that lives', { owners: { ...NO_OWNERS, living: [ownerAt(3), ownerAt(9)] } }],
    ['an owner that lives or has ended', { owners: { ...NO_OWNERS, latest: ownerAt(9) } }],
    ['the record of the highest', { highest: 9 }],
  ])('is above that of %s', (_, clue) => {
    expect(generationAfter({ ...NOTHING, base: goodAt(5), ...clue })).toBe(10);
  });
});

describe('the last good generation', () => {
  const at = (generation: number) => ({ generation }) as Checkpoint;
  const good = (generation: number) => ({ kind: 'good', checkpoint: at(generation) }) as FoundState;
  const damagedWith = (checkpoint?: Checkpoint) => ({ kind: 'damaged', why: '', checkpoint }) as FoundState;
  const missing: FoundState = { kind: 'missing' };
  const generation = (...clues: [FoundState, FoundState, Checkpoint?]) =>
    lastGood(clues[0], clues[1], () => undefined, clues[2])?.generation;

  it('is the newest of the state file, its copy and what this process read before', () => {
    expect(generation(good(5), good(4), at(3))).toBe(5);
    expect(generation(good(3), good(4), at(5))).toBe(5);
    expect(generation(good(4), good(5))).toBe(5);
  });

  it('may be the readable part of a damaged file, and is unknown if nothing can be read', () => {
    expect(generation(damagedWith(at(5)), good(4))).toBe(5);
    expect(generation(damagedWith(), missing, at(2))).toBe(2);
    expect(generation(damagedWith(), missing)).toBeUndefined();
  });
});

/** A transaction that commits nothing: what it leaves is the work of the recovery. */
const recover = ({ stateDir }: Manager) =>
  Ledger.open(stateDir).transact({ lockTimeoutMs: 60_000, totalOn: () => 0 }, async () => {});

describe('a recovery', () => {
  it('writes its state to both files, so that the loss of the newer one loses nothing', async () => {
    const manager = await open();
    const { stateDir } = manager;
    await manager.acquire({ cpu: 2, owner: 'persistent', name: 'first' });
    await manager.acquire({ cpu: 2, owner: 'persistent', name: 'second' });
    // It lacks the second grant, which the owner's file has.
    writeFileSync(join(stateDir, 'state.json'), stateBefore(stateDir));
    await recover(manager);
    const [now, previous] = ['state.json', 'state.copy.json'].map((name) => checkpointIn(stateDir, name));
    const namesOf = ({ assignments }: Checkpoint) => assignments.pods.map(({ name }) => name);
    expect([namesOf(now!), namesOf(previous!)]).toEqual([
      ['first', 'second'],
      ['first', 'second'],
    ]);
    expect(now!.generation).toBeGreaterThanOrEqual(previous!.generation);
  });

  it('continues above the generation that a damaged file names', async () => {
    const stateDir = makeStateDir();
    await (await open(stateDir)).acquire({ cpu: 2, owner: 'persistent' });
    const { generation } = checkpointIn(stateDir, 'state.json');
    const text = readFileSync(join(stateDir, 'state.json'), 'utf8');
    const moved = `${stateDir}-moved`;
    cpSync(stateDir, moved, { recursive: true });
    writeFileSync(
      join(moved, 'state.json'),
      text.replace(`"generation":${generation}`, `"generation":${generation + 100}`),
    );
    writeHighest(moved);
    await recover(await open(moved));
    expect(checkpointIn(moved, 'state.json').generation).toBeGreaterThan(generation + 100);
  });

  it('records in the owner’s file the generation since which its grants are held', async () => {
    const manager = await open();
    const { stateDir } = manager;
    const { uid } = await manager.acquire({ cpu: 2 });
    for (let i = 0; i < 3; i++) await manager.acquire({ cpu: 1, owner: 'persistent' });
    const { pods } = checkpointIn(stateDir, 'state.json').assignments;
    const path = join(stateDir, 'owners', pods.find((pod) => pod.uid === uid)!.owner.uuid);
    writeFileSync(join(stateDir, 'state.json'), 'torn');
    writeFileSync(path, 'torn');
    await recover(manager);
    const file = decodeOwnerFile(readFileSync(path));
    expect(file.pods.map(({ uid }) => uid)).toEqual([uid]);
    // An owner's file that is older than the last good generation claims only the grants that this
    // generation has on record.
    expect(file.generation).toBeGreaterThanOrEqual(checkpointIn(stateDir, 'state.copy.json').generation - 1);
  });
});

describe('an owner whose state is unknown counts as alive:', () => {
  it.runIf(isRoot)('an owner whose file is closed to this user', async () => {
    const manager = await open();
    await manager.acquire({ cpu: 1 });
    const owners = join(manager.stateDir, 'owners');
    const [uuid] = readdirSync(owners) as [string];
    const folder = native.Folder.open(owners, false, 0o700, -1);
    chmodSync(join(owners, uuid), 0o600);
    chmodSync(owners, 0o711);
    expect([isLocked(folder, uuid), asNobody(() => isLocked(folder, uuid))]).toEqual([true, true]);
  });

  it('a cgroup of another cgroup namespace', () => {
    const nowhere = { path: '/sys/fs/cgroup/numalign-test-nowhere', device: '0', inode: '0' };
    expect(isCgroupAlive({ ...nowhere, namespace: 'cgroup:[1]' })).toBe(true);
    expect(mayCgroupBeThere({ ...nowhere, namespace: 'cgroup:[1]' })).toBe(true);
  });

  it('a cgroup on another file system than the one that is mounted here', () => {
    const nowhere = { path: '/sys/fs/cgroup/numalign-test-nowhere', device: '0', inode: '0' };
    expect(isCgroupAlive({ ...nowhere, namespace: namespaceOf('cgroup') })).toBe(true);
  });

  it('a cgroup whose folder cannot be read', () => {
    const path = `${makeStateDir()}-loop`;
    onTestFinished(() => rmSync(path));
    symlinkSync(path, path);
    const inLoop = { path: join(path, 'inner'), device: '0', inode: '0', namespace: namespaceOf('cgroup') };
    expect(isCgroupAlive(inLoop)).toBe(true);
  });
});
