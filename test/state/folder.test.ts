// needs: agents
// State folders at paths that cannot be used.
import fs, { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { constants } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { NumalignError } from '../../lib/base/errors.js';
import { MACHINE_STATE_DIR } from '../../lib/input/config.js';
import { checkUsable, hasState, scopeOf } from '../../lib/state/folder/folder.js';
import { explain } from '../../lib/state/folder/folder-error.js';
import { thrownBy } from '../support/error-of.js';
import { makeStateDir } from '../support/state-dir.js';

const NO_PARENT = 'the folder above it does not exist, or is closed to you';

/** Why the folder of this name in a folder with a file cannot be used. */
function whyNot(name: string): string | undefined {
  const folder = makeStateDir();
  mkdirSync(folder);
  writeFileSync(join(folder, 'file'), '');
  const path = join(folder, name);
  const error = thrownBy(() => checkUsable(path));
  expect(error).toMatchObject({ code: 'ERR_STATE_FOLDER', details: { value: path } });
  return error?.message.replaceAll(folder, 'FOLDER');
}

describe('a state folder', () => {
  it.each([
    ['no/such/state', NO_PARENT],
    ['file/state', 'it is below FOLDER/file, which is not a folder'],
    ['file/below/state', 'it is below FOLDER/file, which is not a folder'],
    ['a'.repeat(256), 'it cannot be found: ENAMETOOLONG'],
  ])('is refused at %s, and why', (name, why) => {
    expect(whyNot(name)).toContain(why);
  });

  it.each([
    ['.', 'it cannot be written: EACCES'],
    ['new', 'it cannot be made: EACCES'],
  ])('is refused at %s if the kernel lets this user write nothing there', (name, why) => {
    const access = vi.spyOn(fs, 'accessSync').mockImplementation(() => {
      throw Object.assign(new Error('EACCES: permission denied'), { code: 'EACCES' });
    });
    syncBuiltinESMExports();
    onTestFinished(() => {
      access.mockRestore();
      syncBuiltinESMExports();
    });
    expect(whyNot(name)).toContain(why);
  });

  it.each([
    ['state.json', true],
    ['state.copy.json', true],
    ['state.json.new', false],
  ])('has a state with a file %s: %s', (name, isState) => {
    const folder = makeStateDir();
    mkdirSync(folder);
    expect(hasState(folder)).toBe(false);
    writeFileSync(join(folder, name), '');
    expect(hasState(folder)).toBe(isState);
  });

  it('is the machine’s at its path, and private at any other, also where nothing is', () => {
    const folder = makeStateDir();
    mkdirSync(folder);
    expect([folder, join(folder, 'new'), join(folder, 'no/such/folder')].map(scopeOf)).toEqual([
      ...['private', 'private', 'private'],
    ]);
    const link = join(folder, 'run');
    symlinkSync(dirname(MACHINE_STATE_DIR), link);
    expect([MACHINE_STATE_DIR, join(link, basename(MACHINE_STATE_DIR))].map(scopeOf)).toEqual([
      ...['machine', 'machine'],
    ]);
  });
});

describe('an error in a state folder', () => {
  const PATH = '/tmp/some/state';
  const { EACCES, EINVAL, EIO, EISDIR, ELOOP, ENOENT, ENOLCK, ENXIO, EPERM, EROFS, ESTALE } = constants.errno;
  const explained = (errno: number, message = `cannot open the folder ${PATH}: no`, syscall = 'open') => {
    const { code, message: text } = explain(
      PATH,
      new NumalignError('ERR_SYSCALL', message, { errno, syscall }),
    );
    return code === 'ERR_STATE_FOLDER' ? text.replace(`the state folder ${PATH} cannot be used: `, '') : code;
  };

  it.each([
    [ELOOP, 'it is a symbolic link, and links are not followed: name the folder'],
    [ENOENT, 'the folder above it does not exist: make it first'],
    [EACCES, 'permission denied: use a folder of your own'],
    [EPERM, 'permission denied: use a folder of your own'],
    [EROFS, 'its file system is read-only: use a folder elsewhere'],
    [EISDIR, 'it is not an ordinary file'],
    [ENXIO, 'it is not an ordinary file'],
    [EIO, 'ERR_SYSCALL'],
    [EINVAL, 'ERR_SYSCALL'],
  ])('with errno %i is explained: %s', (errno, why) => {
    expect(explained(errno)).toBe(why);
  });

  it('is explained with its own message if it is of a file in the folder', () => {
    const message = `cannot open lock in ${PATH}: no`;
    expect(explained(ELOOP, message)).toBe(`${message} (links are not followed)`);
    expect(explained(ENXIO, message)).toBe(`${message} (it is not an ordinary file)`);
    expect(explained(EROFS, message)).toBe('its file system is read-only: use a folder elsewhere');
  });

  it('is explained by what locks need', () => {
    for (const errno of [EINVAL, ENOLCK])
      expect(explained(errno, 'no lock', 'fcntl')).toContain('has no open-file-description locks');
    expect(explained(EIO, 'no lock', 'fcntl')).toBe('ERR_SYSCALL');
    expect(explained(ESTALE, 'no lock', 'fcntl')).toContain(
      'the file of its lock was removed while it was locked',
    );
  });

  it('names the folder once, and stays as it is if it is another', () => {
    const damage = (message: string) => explain(PATH, new NumalignError('ERR_STATE_CORRUPT', message));
    expect(damage('it is damaged').message).toBe(`it is damaged (in ${PATH})`);
    expect(damage(`${PATH} is damaged`).message).toBe(`${PATH} is damaged`);
    const other = new NumalignError('ERR_MANAGER_CLOSED', 'late');
    expect(explain(PATH, other)).toBe(other);
    const bug = new TypeError('bug');
    expect(explain(PATH, bug)).toBe(bug);
  });
});
