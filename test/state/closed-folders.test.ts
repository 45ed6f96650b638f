// needs: modules
// Why a user may not use the machine's folder, and the command that repairs it: on a machine with
// these groups and files.
import type fs from 'node:fs';
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import type * as errors from '../../lib/base/errors.js';
import { native } from '../../lib/base/native.js';
import { checkUsable } from '../../lib/state/folder/folder.js';
import {
  giveToGroup,
  groupId,
  mendText,
  notTheGroups,
  whyClosed,
} from '../../lib/state/folder/machine-group.js';
import { thrownBy } from '../support/error-of.js';
import { makeStateDir } from '../support/state-dir.js';

const FOLDER = '/run/numalign';
const [GROUP, OTHER, BOB] = [54321, 54322, 54323];

const world = {
  mounts: '',
  group: '',
  passwd: '',
  gids: {} as Record<string, number>,
  closed: [] as string[],
  given: [] as string[],
};

vi.mock('node:fs', async (original) => {
  const real = await original<typeof fs>();
  const readFileSync = (path: string, ...rest: [BufferEncoding]) => {
    if (path === '/etc/group') return world.group;
    return path === '/etc/passwd' ? world.passwd : real.readFileSync(path, ...rest);
  };
  const lstatSync = (path: string, ...rest: [fs.StatSyncOptions]) => {
    if (!path.startsWith(FOLDER)) return real.lstatSync(path, ...rest);
    const gid = world.gids[path];
    return gid === undefined ? undefined : { gid, dev: 1n, ino: 1n };
  };
  const accessSync = (path: string, ...rest: [number]) => {
    if (!path.startsWith(FOLDER)) return real.accessSync(path, ...rest);
    if (world.closed.includes(path)) throw Object.assign(new Error('EACCES: denied'), { code: 'EACCES' });
  };
  const statfsSync = (path: string) => (path === FOLDER ? { blocks: 1, bavail: 1 } : real.statfsSync(path));
  const fchownSync = (fd: number, user: number, group: number) => {
    world.given.push(basename(real.readlinkSync(`/proc/self/fd/${fd}`)));
    real.fchownSync(fd, user, group);
  };
  return { ...real, fchownSync, readFileSync, lstatSync, accessSync, statfsSync };
});

vi.mock('../../lib/base/errors.js', async (original) => {
  const real = await original<typeof errors>();
  const kernelText = (path: string) =>
    path === '/proc/self/mountinfo' && world.mounts !== '' ? world.mounts : real.kernelText(path);
  return { ...real, kernelText };
});

beforeEach(() => {
  world.group = `root:x:0:\nnumalign-old:x:7:\nnumalign:x:${GROUP}:ann,bob\n`;
  world.passwd = `root:x:0:0::/:/bin/sh\nbob:x:${BOB}:${BOB}::/:/bin/sh\n`;
  world.gids = { [FOLDER]: GROUP, [`${FOLDER}/lock`]: GROUP, [`${FOLDER}/state.json`]: GROUP };
  world.closed = [];
  world.given = [];
  world.mounts = '';
  vi.spyOn(process, 'geteuid').mockReturnValue(BOB);
  vi.spyOn(process, 'getegid').mockReturnValue(BOB);
  vi.spyOn(process, 'getgroups').mockReturnValue([GROUP]);
});

afterEach(() => void vi.restoreAllMocks());

describe('the machine’s folder is closed', () => {
  it('without a group: root makes it, with this user, and gives it the folder', () => {
    world.group = 'root:x:0:\nnumalign-old:x:7:\n';
    expect(groupId()).toBe(-1);
    expect(whyClosed(FOLDER)).toMatch(
      /^as root run `groupadd -rf numalign && usermod -aG numalign bob && install -d -m 2770 -g numalign \/run\/numalign && chgrp -R numalign \/run\/numalign`, then log in again .*; now the machine has no group numalign/,
    );
    expect(notTheGroups(FOLDER)).toBeUndefined();
  });

  it('to a user who is no member, by name or by number', () => {
    vi.mocked(process.getgroups!).mockReturnValue([OTHER]);
    world.group = world.group.replace('bob', 'bobby');
    const stranger = (user: string) =>
      `only root and members of the group numalign may use it, and user ${user} is not one: as root run \`usermod -aG numalign ${user}\`, then log in again (open sessions do not get the group)`;
    expect(whyClosed(FOLDER)).toBe(stranger('bob'));
    world.passwd = '';
    expect(whyClosed(FOLDER)).toBe(stranger(`${BOB}`));
  });

  it('to a process that is older than the membership of its user', () => {
    vi.mocked(process.getgroups!).mockReturnValue([]);
    expect(whyClosed(FOLDER)).toContain('was started before user bob became one: log in again');
    vi.mocked(process.getegid!).mockReturnValue(GROUP);
    expect(whyClosed(FOLDER)).toContain('members of the group numalign may use it, but');
  });

  it('to a member if it does not exist', () => {
    world.gids = {};
    expect(whyClosed(FOLDER)).toBe(
      'members of the group numalign may use it, but it does not exist: as root run `install -d -m 2770 -g numalign /run/numalign`',
    );
    expect(notTheGroups(FOLDER)).toBeUndefined();
  });

  it.each(['', '/lock', '/state.json', '/owners', '/members', '/waiting'])(
    'to a member if %s in it is another group’s',
    (part) => {
      expect(notTheGroups(FOLDER)).toBeUndefined();
      world.gids[`${FOLDER}${part}`] = OTHER;
      expect(notTheGroups(FOLDER)).toBe(`${FOLDER}${part}`);
      expect(whyClosed(FOLDER)).toBe(
        `members of the group numalign may use it, but ${FOLDER}${part} belongs to another group: as root run \`${mendText(FOLDER)}\``,
      );
    },
  );

  it('to a member by its mode', () => {
    expect(whyClosed(FOLDER)).toContain('but its modes do not let them in: as root run `chgrp -R numalign');
  });
});

describe('a folder that this user can open', () => {
  let owner: { user: number; group: number; mode: number };

  beforeEach(() => {
    owner = { user: 0, group: GROUP, mode: 0o2770 };
    const folder = { owner: () => owner, close: () => {} };
    const { Folder } = native;
    Object.assign(native, { Folder: { open: () => folder } });
    onTestFinished(() => void Object.assign(native, { Folder }));
  });

  it('is usable if it and all its parts can be written', () => {
    expect(thrownBy(() => checkUsable(FOLDER))).toBeUndefined();
  });

  it.each(['', '/lock', '/state.json'])('is not usable if %s in it cannot be written', (part) => {
    world.closed = [`${FOLDER}${part}`];
    const error = thrownBy(() => checkUsable(FOLDER));
    expect(error).toMatchObject({ code: 'ERR_STATE_FOLDER' });
    expect(error!.message).toContain('its modes do not let them in');
  });

  it('is not usable in the upper layer of an overlay', () => {
    world.mounts =
      '36 35 0:40 / /merged rw - overlay overlay rw,lowerdir=/lower,upperdir=/run,workdir=/work\n';
    const error = thrownBy(() => checkUsable(FOLDER));
    expect(error).toMatchObject({ code: 'ERR_STATE_FOLDER', details: { value: FOLDER } });
    expect(error!.message).toContain(
      'it is in the upper layer of the overlay /merged: use it there, where the same files have other locks',
    );
  });

  it.each([
    ['of another user', { user: OTHER }, `it belongs to user ${OTHER}, neither to you nor to root`],
    ['that every user may write to', { mode: 0o2772 }, 'every user may write to it (mode 2772)'],
    ['of this user', { user: BOB }, undefined],
  ])('is usable only if it is safe: one %s', (_, more, why) => {
    owner = { ...owner, ...more };
    expect(thrownBy(() => checkUsable(FOLDER))?.message ?? '').toContain(why ?? '');
    expect(thrownBy(() => checkUsable(FOLDER)) === undefined).toBe(why === undefined);
  });
});

describe.runIf(process.getuid?.() === 0)('a folder that root gives to the group', () => {
  it('gets the lock last, whose group shows that all is done', () => {
    vi.mocked(process.geteuid!).mockReturnValue(0);
    const folder = makeStateDir();
    mkdirSync(folder);
    chmodSync(folder, 0o2770);
    const names = ['a', 'b', 'c', 'lock', 'owners', 'state.json', 'waiting', 'x', 'y', 'z'];
    for (const name of names) writeFileSync(join(folder, name), '');
    giveToGroup(folder, GROUP);
    expect([...world.given].sort()).toEqual([...names, basename(folder)].sort());
    expect(world.given.at(-1)).toBe('lock');
  });
});
