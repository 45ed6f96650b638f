// needs: folders
// A state folder that is read only: what is in it, whatever comes and goes.
import { mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { emptyAssignments } from '../../lib/account/assignments.js';
import type { OwnerRecord, PodAssignment } from '../../lib/account/pod-assignment.js';
import { native } from '../../lib/base/native.js';
import { DEFAULT_SETTINGS } from '../../lib/decision/machine-settings.js';
import { CpuSet } from '../../lib/machine/cpu-set.js';
import { openExisting } from '../../lib/state/folder/existing.js';
import { readBootId } from '../../lib/state/folder/folder.js';
import { encodeCheckpoint } from '../../lib/state/format/journal.js';
import { ReadOnlyStore } from '../../lib/state/read-only-store.js';
import { thrownBy } from '../support/error-of.js';
import { quiet } from '../support/quiet.js';
import { podOf } from '../support/quiet-world.js';
import { makeStateDir } from '../support/state-dir.js';

const LIVING = '0f9b8a70-1d2e-4f3a-8b4c-5d6e7f8a9b0c';
const DEAD = '0f9b8a71-1d2e-4f3a-8b4c-5d6e7f8a9b0c';
const LASTING = '0f9b8a72-1d2e-4f3a-8b4c-5d6e7f8a9b0c';
const EMPTY = emptyAssignments(DEFAULT_SETTINGS);

const pod = (uid: string, owner: string, more: Partial<PodAssignment> = {}) => ({
  ...podOf(uid, owner, CpuSet.of(Number(uid)), quiet('0').request),
  quiet: undefined,
  ...more,
});

const textOf = (generation: number, pods: PodAssignment[] = [], bootId = readBootId()) =>
  encodeCheckpoint({
    ...{ generation, bootId, writtenAt: '2026-01-01T00:00:00.000Z' },
    assignments: { ...EMPTY, pods },
  });

function storeAt(path: string | undefined) {
  const store = new ReadOnlyStore(
    path,
    () => ({ ...EMPTY }),
    () => 0,
  );
  onTestFinished(() => store.close());
  return store;
}

/** A folder with a state, as a store that only reads it. */
function stateOf(text?: string, path = makeStateDir()) {
  mkdirSync(join(path, 'owners'), { recursive: true });
  const write = (content: string, name = 'state.json') => {
    writeFileSync(join(path, `${name}.new`), content);
    renameSync(join(path, `${name}.new`), join(path, name));
  };
  if (text !== undefined) write(text);
  return { path, write, store: storeAt(path) };
}

const uidsIn = (store: ReadOnlyStore) => store.read().assignments.pods.map(({ uid }) => uid);

/** Makes the file of an owner that lives until the test is over. */
function startOwner(path: string, uuid: string) {
  const owners = native.Folder.open(join(path, 'owners'), false, 0o700, -1);
  const file = owners.createOwner(uuid, '');
  onTestFinished(() => file.close());
  return file;
}

describe('a state that is read only', () => {
  it('is empty, and makes nothing, where there is no folder or no state', () => {
    const store = storeAt(makeStateDir());
    const { generation, assignments } = store.read();
    expect({ generation, assignments }).toEqual({ generation: 0, assignments: EMPTY });
    expect(store.read().assignments).toBe(assignments);
    expect(store.found).toBeUndefined();
    expect(openExisting(store.path)).toBeUndefined();
    expect(store.lookInto('quarantine', () => 'there')).toBeUndefined();
    expect(store.owners.isProcessAlive(LIVING)).toBe(false);
    expect(store.owners.deadPods([pod('1', LIVING)])).toHaveLength(1);
    const { path, store: without } = stateOf();
    expect(without.read()).toMatchObject({ generation: 0, assignments: EMPTY });
    expect(readdirSync(path)).toEqual(['owners']);
  });

  it('is refused at a path that no folder can have', () => {
    const { path } = stateOf();
    writeFileSync(join(path, 'file'), '');
    for (const at of [join(path, 'file'), join(path, 'file', 'below')])
      expect(thrownBy(() => storeAt(at).read())).toMatchObject({ code: 'ERR_STATE_FOLDER' });
  });

  it('is refused if a part of it is no folder', () => {
    const { path, store } = stateOf(textOf(1));
    for (const name of ['owners', 'quarantine']) {
      rmSync(join(path, name), { recursive: true, force: true });
      writeFileSync(join(path, name), '');
    }
    const refused = { code: 'ERR_STATE_FOLDER', details: { value: path } };
    expect(thrownBy(() => store.read())).toMatchObject(refused);
    rmSync(join(path, 'owners'));
    expect(store.read().generation).toBe(1);
    expect(thrownBy(() => store.lookInto('quarantine', () => 'there'))).toMatchObject(refused);
  });

  it('is read again only if it has changed', () => {
    const { store, write } = stateOf(textOf(3, [pod('1', DEAD)]));
    const first = store.read();
    expect(first).toMatchObject({ generation: 3, assignments: { pods: [{ uid: '1' }] } });
    expect(store.read()).toBe(first);
    expect(store.found).toMatchObject({ kind: 'good', checkpoint: { generation: 3 } });
    write(textOf(4));
    expect(store.read()).toMatchObject({ generation: 4, assignments: { pods: [] } });
  });

  it('is the one of the folder that its path leads to, or none', () => {
    const { path, store } = stateOf(textOf(3, [pod('1', DEAD)]));
    expect(uidsIn(store)).toEqual(['1']);
    rmSync(path, { recursive: true });
    expect(store.read().generation).toBe(0);
    stateOf(textOf(2, [pod('2', DEAD)]), path);
    expect(uidsIn(store)).toEqual(['2']);
    store.close();
    expect(uidsIn(store)).toEqual(['2']);
  });

  it('is what its copy says if it is damaged, with the grants of living owners', () => {
    const { path, write, store } = stateOf('nonsense');
    write(textOf(5, [pod('1', DEAD), pod('2', LIVING)]), 'state.copy.json');
    startOwner(path, LIVING);
    expect(thrownBy(() => store.read())).toBeUndefined();
    expect(store.read().generation).toBe(5);
    rmSync(join(path, 'owners'), { recursive: true });
    write('other nonsense');
    expect(store.read()).toMatchObject({ generation: 5, assignments: { pods: [] } });
    write('', 'state.copy.json');
    write('nothing');
    expect(store.read()).toMatchObject({ generation: 0, assignments: EMPTY });
  });

  it('has no grants of an earlier boot', () => {
    const { store, write } = stateOf(textOf(3, [pod('1', DEAD)], 'an earlier boot'));
    expect(store.read()).toMatchObject({ generation: 3, assignments: { pods: [] } });
    write(textOf(4, [pod('1', DEAD)]));
    expect(uidsIn(store)).toEqual(['1']);
  });

  it('lets others look into its folders', () => {
    const { path, store } = stateOf(textOf(1));
    mkdirSync(join(path, 'quarantine'));
    writeFileSync(join(path, 'quarantine', 'file'), '');
    expect(store.lookInto('quarantine', (folder, at) => [folder.list(), at])).toEqual([
      ['file'],
      join(path, 'quarantine'),
    ]);
    expect(store.lookInto('members', () => 'there')).toBeUndefined();
  });

  it('reports each commit until its listener ends', async () => {
    const { store, write } = stateOf(textOf(1));
    store.read();
    let notices = 0;
    const end = store.watch(() => notices++, { isQuiet: true, atOnce: true });
    write(textOf(2));
    await expect.poll(() => notices).toBeGreaterThan(0);
    end();
    const before = notices;
    write(textOf(3));
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(notices).toBe(before);
  });
});

describe('the owners of a state that is read only', () => {
  const owner: OwnerRecord = pod('1', DEAD).owner;

  it('are others, which live while they hold their locks', () => {
    const { path, store } = stateOf(textOf(1));
    const file = startOwner(path, LIVING);
    writeFileSync(join(path, 'owners', DEAD), '');
    expect([LIVING, DEAD].map((uuid) => store.owners.isProcessAlive(uuid))).toEqual([true, false]);
    expect(store.owners.isOwn(owner)).toBe(false);
    const pods = [
      pod('1', DEAD),
      pod('2', LIVING),
      pod('3', DEAD, { formerOwner: LIVING }),
      pod('4', DEAD, { owner: { ...owner, kind: 'persistent', uuid: LASTING } }),
    ];
    expect(store.owners.deadPods(pods).map(({ uid }) => uid)).toEqual(['1']);
    file.close();
    expect(store.owners.deadPods(pods).map(({ uid }) => uid)).toEqual(['1', '2', '3']);
    expect(store.owners.isProcessAlive(LIVING)).toBe(false);
  });

  it('are found in a folder of theirs that is made or replaced later', () => {
    const { path, store } = stateOf(textOf(1));
    store.read();
    rmSync(join(path, 'owners'), { recursive: true });
    expect(store.owners.isProcessAlive(LIVING)).toBe(false);
    expect(store.owners.deadPods([pod('1', LIVING)])).toHaveLength(1);
    mkdirSync(join(path, 'owners'));
    startOwner(path, LIVING);
    expect(store.owners.isProcessAlive(LIVING)).toBe(true);
  });
});

describe('a state of no folder', () => {
  it('is empty, has no living owners, and reports nothing', () => {
    const store = storeAt(undefined);
    expect([store.scope, store.path]).toEqual(['memory', 'memory']);
    expect(store.read()).toMatchObject({ generation: 0, assignments: EMPTY });
    expect(store.owners.isProcessAlive(LIVING)).toBe(false);
    expect(store.owners.deadPods([pod('1', DEAD)])).toHaveLength(1);
    expect(store.lookInto('quarantine', () => 'there')).toBeUndefined();
    store.watch(() => {})();
  });
});
