// needs: folders
// A note says whether the files in owners/ are numalign's own, whatever other programs do.
import { mkdirSync, readFileSync, renameSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { native } from '../../lib/base/native.js';
import { OwnerNames } from '../../lib/state/files/owner-names.js';
import { makeStateDir } from '../support/state-dir.js';

const COMPLETE = { isComplete: true };

function folder(parent = '/dev/shm') {
  const path = makeStateDir(parent);
  for (const part of ['owners', 'notes']) mkdirSync(join(path, part), { recursive: true });
  const open = (...names: string[]) => native.Folder.open(join(path, ...names), false, 0o700, -1);
  /** As another process has them. */
  const names = () => new OwnerNames(open('owners'), open('notes'), path);
  const file = (name: string) => join(path, 'owners', name);
  const write = (name: string) => writeFileSync(file(name), name);
  const noted = () => {
    names().keepAfter(() => COMPLETE);
    return names();
  };
  return { path, names, file, write, noted, note: join(path, 'notes', 'owners.note') };
}

describe('the names of owners’ files', () => {
  it('are kept once all owners were found', () => {
    const { names, write } = folder();
    write('a');
    expect(names().areKept()).toBe(false);
    const found = { isComplete: true, found: 1 };
    expect(names().keepAfter(() => found)).toBe(found);
    expect(names().areKept()).toBe(true);
  });

  it('are not kept if an owner was not found, or if they changed during the look', () => {
    const { names, write } = folder();
    names().keepAfter(() => ({ isComplete: false }));
    expect(names().areKept()).toBe(false);
    names().keepAfter(() => {
      write('a');
      return COMPLETE;
    });
    expect(names().areKept()).toBe(false);
  });

  it('stay kept while numalign adds, replaces and removes files', () => {
    const { noted, names, write, file } = folder();
    write('a');
    const own = noted();
    own.change(['b'], () => write('b'));
    expect([own.areKept(), names().areKept()]).toEqual([true, true]);
    names().change(['a'], () => {
      write('a.new');
      renameSync(file('a.new'), file('a'));
    });
    expect([own.areKept(), names().areKept()]).toEqual([true, true]);
    own.change(['b'], () => rmSync(file('b')));
    expect([own.areKept(), names().areKept()]).toEqual([true, true]);
  });

  it('stay as they are if a change fails', () => {
    const { noted, names } = folder();
    const fail = () => {
      throw new Error('no space');
    };
    expect(() => noted().change(['a'], fail)).toThrow('no space');
    expect(names().areKept()).toBe(true);
  });

  it('are not kept if another program swaps files or replaces the new one during a change', () => {
    const { noted, names, write, file } = folder();
    for (const name of ['a', 'b']) write(name);
    const swap = () => {
      for (const [from, to] of ['ac', 'ba', 'cb']) renameSync(file(from!), file(to!));
    };
    noted().change(['d'], swap);
    expect(names().areKept()).toBe(false);
    noted().change(
      ['d'],
      () => write('d'),
      () => false,
    );
    expect(names().areKept()).toBe(false);
  });

  it('are not kept if another program replaces the new file until it is certain that it is there', () => {
    const { noted, names, write, file, path } = folder();
    noted().change(
      ['d'],
      () => write('d'),
      () => {
        writeFileSync(join(path, 'other'), 'other');
        renameSync(join(path, 'other'), file('d'));
        return true;
      },
    );
    expect(names().areKept()).toBe(false);
  });

  it('are not kept if another folder may have had its name meanwhile', () => {
    const { noted, names, path } = folder();
    const own = noted();
    for (const [from, to] of [
      [path, `${path}.away`],
      [`${path}.away`, path],
    ])
      renameSync(from!, to!);
    expect([own.areKept(), names().areKept()]).toEqual([false, false]);
  });

  it('are not kept by a change during which another folder had its name', () => {
    const { noted, names, path } = folder();
    noted().change(['a'], () => {
      renameSync(path, `${path}.away`);
      renameSync(`${path}.away`, path);
    });
    expect(names().areKept()).toBe(false);
  });

  // At once: in the same tick of the kernel's clock for files.
  it.each<[what: string, act: (all: ReturnType<typeof folder>) => void]>([
    ['adds a file', ({ write }) => write('c')],
    ['removes a file', ({ file }) => rmSync(file('a'))],
    [
      'replaces a file',
      ({ file, write }) => {
        rmSync(file('a'));
        write('a');
      },
    ],
    [
      'puts a copy in the place of a file',
      ({ file, path }) => {
        writeFileSync(join(path, 'copy'), 'a');
        renameSync(join(path, 'copy'), file('a'));
      },
    ],
    [
      'removes a file and sets the folder’s time back',
      ({ file, path }) => {
        rmSync(file('a'));
        utimesSync(join(path, 'owners'), 1, 1);
      },
    ],
    [
      'replaces the folder',
      ({ path, write }) => {
        renameSync(join(path, 'owners'), join(path, 'former'));
        mkdirSync(join(path, 'owners'));
        for (const name of ['a', 'b']) write(name);
      },
    ],
    ['changes the note', ({ note }) => writeFileSync(note, `${readFileSync(note, 'utf8').slice(0, -2)}\n`)],
    ['removes the note', ({ note }) => rmSync(note)],
  ])('are not kept if another program %s, and do not become so by a change', (_, act) => {
    const all = folder();
    all.write('a');
    const own = all.noted();
    own.change(['b'], () => all.write('b'));
    act(all);
    expect(all.names().areKept()).toBe(false);
    own.change(['d'], () => all.write('d'));
    expect([own.areKept(), all.names().areKept()]).toEqual([false, false]);
  });

  it('are not kept by a process that knew them if another program replaces a file later', async () => {
    const { noted, file, write } = folder();
    write('a');
    const own = noted();
    // Until a change has another time.
    await pause(200);
    expect(own.areKept()).toBe(true);
    rmSync(file('a'));
    write('a');
    expect(own.areKept()).toBe(false);
  });

  it('are never kept on a disk, where a new file may have the inode of a removed one', () => {
    expect(folder('/var/tmp').noted().areKept()).toBe(false);
  });
});
