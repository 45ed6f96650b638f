// needs: agents
// State folders at paths that cannot be used.
import fs, { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { MACHINE_STATE_DIR } from '../../lib/input/config.js';
import { checkUsable, hasState, scopeOf } from '../../lib/state/folder/folder.js';
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
