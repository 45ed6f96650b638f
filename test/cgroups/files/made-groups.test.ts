// needs: machine
// The cgroups that numalign made, as other processes see them.
import { readdirSync, statSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { FolderMadeGroups, MadeGroupsInMemory } from '../../../lib/cgroups/files/made-groups.js';
import { thrownBy } from '../../support/error-of.js';
import { makeStateDir } from '../../support/state-dir.js';

describe.each([
  ['in memory', () => new MadeGroupsInMemory()],
  ['in a folder', () => new FolderMadeGroups(makeStateDir())],
])('groups that were made, %s', (_, open) => {
  it('are known by path, device and inode together', () => {
    const made = open();
    made.add('/a', 29n, 7n);
    made.add('/b', 29n, 2n ** 40n);
    expect(made.has('/a', 29n, 7n)).toBe(true);
    expect(made.has('/b', 29n, 2n ** 40n)).toBe(true);
    expect(made.has('/b', 29n, 7n)).toBe(false);
    expect(made.has('/a', 30n, 7n)).toBe(false);
    made.remove('/a', 29n, 7n);
    made.remove('/a', 29n, 7n);
    expect(made.has('/a', 29n, 7n)).toBe(false);
    expect(made.has('/b', 29n, 2n ** 40n)).toBe(true);
  });
});

describe('a folder of groups that were made', () => {
  it('is shared, and is empty in the end', () => {
    const folder = makeStateDir();
    const [one, other] = [new FolderMadeGroups(folder), new FolderMadeGroups(folder)];
    one.add('/a b', 1n, 2n);
    expect(other.has('/a b', 1n, 2n)).toBe(true);
    other.remove('/a b', 1n, 2n);
    expect(one.has('/a b', 1n, 2n)).toBe(false);
    expect(readdirSync(folder)).toEqual([]);
  });

  it('is open only to the user that makes it', () => {
    const folder = makeStateDir();
    new FolderMadeGroups(folder).add('/a', 1n, 2n);
    const { mode, uid, gid } = statSync(folder);
    expect([mode & 0o7777, uid, gid]).toEqual([0o700, process.geteuid!(), process.getegid!()]);
  });

  it('is not a link', () => {
    const folder = makeStateDir();
    symlinkSync('/tmp', folder);
    expect(thrownBy(() => new FolderMadeGroups(folder).add('/a', 1n, 2n))).toMatchObject({
      code: 'ERR_SYSCALL',
    });
    expect(readdirSync(join(folder, '.'))).not.toContain('1-2');
  });
});
