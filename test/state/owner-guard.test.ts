// needs: folders
// What a process does when files of owners are closed, removed or moved: its own and others'.
import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { PodAssignment } from '../../lib/account/pod-assignment.js';
import { OwnerGuard } from '../../lib/state/owner-guard.js';
import type { Owners } from '../../lib/state/owners/owners.js';
import { makeStateDir } from '../support/state-dir.js';

const OWN = '0f9b8a70-1d2e-4f3a-8b4c-5d6e7f8a9b0c';
const OTHER = '0f9b8a71-1d2e-4f3a-8b4c-5d6e7f8a9b0c';

/** A guard of a folder whose owners are these; everything that it asks for is noted. */
function guarded() {
  const path = makeStateDir();
  mkdirSync(join(path, 'owners'), { recursive: true });
  const world = {
    isOpen: true,
    isCurrent: true,
    isNeeded: true,
    /** How many looks show that another owner still lives. */
    looksAlive: 0,
    /** How many looks show that it lives, and that its file is not the one that it locked. */
    looksWithoutFile: 0,
    hasLeftGrants: true,
    leftBefore: [] as string[],
    isRewritten: false,
    refusals: 0,
    lost: [] as PodAssignment[],
    ownFd: undefined as number | undefined,
  };
  const steps: string[] = [];
  const living = {
    doubt: vi.fn(),
    settle: vi.fn(),
  };
  const owners = {
    hear: () => living,
    isOwnProcess: (uuid: string) => uuid === OWN,
    seemsEnded: () => world.looksAlive-- <= 0,
    seemsToLeaveGrants: () => world.hasLeftGrants,
    hasEnded: () => world.looksWithoutFile-- <= 0,
    withLeftGrants: () => world.leftBefore,
    ownFd: () => world.ownFd,
    own: {
      get isNeeded() {
        return world.isNeeded;
      },
      get lost() {
        return world.lost;
      },
      reassert: () => {
        steps.push('reassert');
        if (world.refusals-- > 0) throw new Error('the disk is full');
        return world.isRewritten;
      },
    },
  };
  const folder = {
    get isOpen() {
      return world.isOpen;
    },
    get isCurrent() {
      return world.isCurrent;
    },
  };
  const guard = new OwnerGuard(path, owners as unknown as Owners, {
    folder,
    ensureCurrent: () => void steps.push('ensureCurrent'),
    touch: async () => void steps.push('touch'),
    ring: () => void steps.push('ring'),
  });
  onTestFinished(() => guard.stop());
  const heard: string[] = [];
  const harms: Error[] = [];
  const listen = (name = 'listener') =>
    guard.add(
      () => heard.push(name),
      (error) => harms.push(error),
    );
  const file = (uuid: string) => join(path, 'owners', uuid);
  /** A process closes this file, which it had open for writing. */
  const close = (uuid: string) => writeFileSync(file(uuid), '');
  return { path, guard, world, steps, living, heard, harms, listen, file, close };
}

const settled = (ms = 30) => new Promise((resolve) => setTimeout(resolve, ms));

describe('the end of another owner', () => {
  it('reaches one listener, once it has left grants', async () => {
    const { listen, close, heard, steps, living } = guarded();
    listen('first');
    listen('second');
    close(OTHER);
    await expect.poll(() => heard).toEqual(['first']);
    expect(steps).toEqual(['ring']);
    expect(living.doubt.mock.calls).toEqual([[OTHER]]);
    await settled(80);
    expect(heard).toEqual(['first']);
  });

  it('reaches it later if its lock is still there after its file was closed', async () => {
    const { listen, close, heard, steps, world } = guarded();
    world.looksAlive = 3;
    listen();
    close(OTHER);
    await expect.poll(() => heard).toEqual(['listener']);
    expect([steps, world.looksAlive]).toEqual([['ring'], -1]);
  });

  it('reaches it later if the owner lives without its file until then', async () => {
    const { listen, close, heard, steps, world } = guarded();
    world.looksWithoutFile = 2;
    listen();
    close(OTHER);
    await expect.poll(() => heard).toEqual(['listener']);
    expect([steps, world.looksWithoutFile]).toEqual([['ring'], -1]);
  });

  it('reaches none without grants, without a listener, or once the folder is closed', async () => {
    const one = guarded();
    one.world.hasLeftGrants = false;
    one.listen();
    one.close(OTHER);
    await expect.poll(() => one.steps).toEqual(['ring']);
    const two = guarded();
    two.world.ownFd = 7;
    two.listen()();
    two.close(OTHER);
    await expect.poll(() => two.steps).toEqual(['ring']);
    const three = guarded();
    three.world.isOpen = false;
    three.listen();
    three.close(OTHER);
    await settled(80);
    expect([one.heard, two.heard, three.heard, three.steps]).toEqual([[], [], [], []]);
  });

  it('is no news of files by other names, and a file that is removed is looked at again', async () => {
    const { listen, close, file, heard, living, steps } = guarded();
    close(OTHER);
    listen();
    close(`${OTHER}.new`);
    rmSync(file(OTHER));
    await expect.poll(() => living.doubt.mock.calls).toEqual([[OTHER]]);
    renameSync(file(`${OTHER}.new`), file(OTHER));
    // The folder is the same: moved away as one name, placed as another.
    await expect.poll(() => living.settle.mock.calls).toEqual([[OTHER]]);
    expect([heard, steps, living.doubt.mock.calls]).toEqual([[], [], [[OTHER]]]);
  });

  it('before the first listener came reaches it a second later, once', async () => {
    const { listen, heard, world } = guarded();
    world.leftBefore = [OTHER];
    const end = listen();
    listen('second');
    await expect.poll(() => heard).toEqual(['listener']);
    end();
    await settled(100);
    expect(heard).toEqual(['listener']);
  });

  it('goes unnoticed once the last listener has ended, unless this process owns something', async () => {
    const one = guarded();
    const [first, second] = [one.listen('a'), one.listen('b')];
    first();
    one.close(OTHER);
    await expect.poll(() => one.heard).toEqual(['b']);
    second();
    one.close(OTHER);
    await settled();
    expect(one.steps).toEqual(['ring']);
  });
});

describe('the own file', () => {
  it.each<[string, (file: string) => void]>([
    ['closed', (file) => writeFileSync(file, '')],
    ['removed', (file) => rmSync(file)],
    ['moved away', (file) => renameSync(file, join(file, '../../away'))],
  ])('is written again if it was %s, and the state is looked at', async (_, change) => {
    const { listen, close, file, steps, world } = guarded();
    close(OWN);
    world.isRewritten = true;
    listen();
    change(file(OWN));
    await expect.poll(() => steps).toEqual(['reassert', 'touch']);
  });

  it('is only looked at if it is as it should be, or the folder is closed', async () => {
    const one = guarded();
    one.listen();
    one.close(OWN);
    await expect.poll(() => one.steps).toEqual(['reassert']);
    const two = guarded();
    two.world.isOpen = false;
    two.listen();
    two.close(OWN);
    await settled();
    expect([one.steps, two.steps]).toEqual([['reassert'], []]);
  });

  it('is written into the folder that is made again if it was moved away, if it is needed', async () => {
    const one = guarded();
    Object.assign(one.world, { isCurrent: false });
    one.listen();
    renameSync(one.path, `${one.path}-away`);
    await expect.poll(() => one.steps).toEqual(['ensureCurrent', 'reassert', 'touch']);
    const two = guarded();
    Object.assign(two.world, { isCurrent: false, isNeeded: false });
    two.listen();
    renameSync(two.path, `${two.path}-away`);
    await expect.poll(() => two.steps).toEqual(['reassert']);
  });

  it('is written after the transaction that runs, and the harm is reported with the next one', async () => {
    const { guard, listen, close, steps, harms, world } = guarded();
    listen();
    world.isRewritten = true;
    await guard.during(async () => {
      close(OWN);
      await settled();
      expect(steps).toEqual([]);
    });
    await expect.poll(() => steps).toEqual(['reassert', 'touch']);
    expect(harms).toEqual([]);
    world.isRewritten = false;
    world.lost = [{ uid: 'one' }, { uid: 'two' }] as PodAssignment[];
    expect(await guard.during(async () => 'done')).toBe('done');
    expect(harms).toMatchObject([{ code: 'ERR_STATE_CORRUPT', details: { value: ['one', 'two'] } }]);
    expect(harms[0]!.message).toContain(
      'the state that was put back lacks one, two, whose CPUs others may have',
    );
    await guard.during(async () => {});
    expect(harms).toHaveLength(1);
    expect(steps).toEqual(['reassert', 'touch']);
  });

  it('is looked at after a transaction that fails, and after each while nothing reports changes', async () => {
    const { guard, steps, listen } = guarded();
    const fail = async () => {
      throw new Error('no room');
    };
    await expect(guard.during(fail)).rejects.toThrow('no room');
    await expect.poll(() => steps).toEqual(['reassert']);
    listen();
    await guard.during(async () => {});
    expect(steps).toEqual(['reassert']);
  });

  it('is tried again while the disk fails, and reported if that lasts', async () => {
    const one = guarded();
    one.world.refusals = 3;
    one.listen();
    one.close(OWN);
    await expect.poll(() => one.steps).toEqual(Array(4).fill('reassert'));
    expect(one.harms).toEqual([]);
    const two = guarded();
    two.world.refusals = 100;
    two.listen();
    two.close(OWN);
    await expect.poll(() => two.harms).toMatchObject([{ message: 'the disk is full' }]);
    expect(two.steps).toHaveLength(20);
  });

  it('is written into another folder at once, or after the transaction that runs', async () => {
    const { guard, steps, listen } = guarded();
    listen();
    guard.restart();
    expect(steps).toEqual(['reassert']);
    await guard.during(async () => {
      guard.restart();
      expect(steps).toEqual(['reassert']);
    });
    await expect.poll(() => steps).toEqual(['reassert', 'reassert']);
    await guard.during(async () => {});
    expect(steps).toHaveLength(2);
  });
});
