// needs: folders
// A reader of state.json that reads what is new: in the same file, in the one after it, or all.
import {
  appendFileSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { emptyAssignments } from '../../lib/account/assignments.js';
import { native } from '../../lib/base/native.js';
import { DEFAULT_SETTINGS } from '../../lib/decision/machine-settings.js';
import { JournalFollower } from '../../lib/state/files/journal-follower.js';
import type { FoundState } from '../../lib/state/files/state-files.js';
import type { Checkpoint } from '../../lib/state/format/checkpoint.js';
import { encodeCheckpoint, encodeJournal } from '../../lib/state/format/journal.js';
import { sealText } from '../../lib/state/format/sealed-json.js';
import { changeText } from '../../lib/state/format/state-change.js';
import { makeStateDir } from '../support/state-dir.js';

const EMPTY = emptyAssignments(DEFAULT_SETTINGS);
const LONG = 1 << 16;

const at = (generation: number, names = 0): Checkpoint => ({
  ...{ generation, bootId: 'boot', writtenAt: '2026-01-01T00:00:00.000Z' },
  assignments: {
    ...EMPTY,
    lastCpus: Array.from({ length: names }, (_, i) => ({ name: `${i}`.padEnd(100), cpus: '0' }) as never),
  },
});
const lineAfter = (before: Checkpoint, next = at(before.generation + 1)) =>
  sealText(changeText(before, { ...next, assignments: { ...before.assignments } })!);

/** A state file, and a reader of it. */
function following(text?: string | Buffer) {
  const path = makeStateDir();
  mkdirSync(path);
  const file = join(path, 'state.json');
  const folder = native.Folder.open(path, false, 0o700, -1);
  const follower = new JournalFollower(folder);
  onTestFinished(() => {
    follower.forget();
    folder.close();
  });
  const replace = (content: string | Buffer) => {
    writeFileSync(`${file}.new`, content);
    renameSync(`${file}.new`, file);
  };
  if (text !== undefined) replace(text);
  const found = () => {
    const state: FoundState = follower.look();
    return state.kind === 'good' ? state.checkpoint.generation : state.kind;
  };
  /** A process has committed this generation. */
  const commit = (generation: number) => {
    const lock = folder.tryLock('lock', '1 test\n')!;
    lock.setNumber(generation);
    lock.release();
  };
  return { path, file, folder, follower, replace, found, commit };
}

const FIRST = encodeCheckpoint(at(1));
const SECOND = lineAfter(at(1)).line;
const THIRD = lineAfter(at(2)).line;

describe('a state file that grows', () => {
  it('is read whole once, and then only where it has grown', () => {
    const { file, follower, found } = following();
    expect([found(), follower.wholeReads, follower.file]).toEqual(['missing', 0, undefined]);
    writeFileSync(file, FIRST);
    const first = follower.look();
    expect([found(), follower.wholeReads, follower.good]).toEqual([1, 1, first]);
    expect(follower.look()).toBe(first);
    appendFileSync(file, SECOND);
    expect([found(), follower.wholeReads]).toEqual([2, 1]);
    appendFileSync(file, THIRD);
    expect([found(), follower.wholeReads, follower.good?.place.end]).toEqual([
      3,
      1,
      readFileSync(file).length,
    ]);
  });

  it('is what its whole lines say while the last one is unfinished, which a writer cuts off', () => {
    const { file, folder, follower, found } = following(FIRST);
    found();
    const size = FIRST.length;
    follower.cutTail();
    expect(readFileSync(file)).toHaveLength(size);
    appendFileSync(file, SECOND.slice(0, 40));
    expect(follower.look()).toMatchObject({ place: { end: size, hasTail: true } });
    appendFileSync(file, SECOND.slice(40, -10));
    expect([found(), follower.good?.place.hasTail]).toEqual([1, true]);
    follower.cutTail();
    expect(readFileSync(file)).toHaveLength(size);
    expect([found(), follower.good?.place.hasTail, follower.wholeReads]).toEqual([1, false, 3]);
    appendFileSync(file, SECOND);
    expect([found(), follower.wholeReads]).toEqual([2, 3]);
    expect(folder.version('state.json')).toBeDefined();
  });

  it('shows others the highest generation that a process knows, whatever it says since', () => {
    const { path, file, follower, found, replace } = following(FIRST + SECOND + THIRD);
    expect(found()).toBe(3);
    const shown = () => {
      const folder = native.Folder.open(path, false, 0o700, -1);
      const journal = folder.openJournal('state.json')!;
      folder.close();
      const highest = journal.shown(1);
      journal.close();
      return highest;
    };
    writeFileSync(file, FIRST + SECOND);
    expect([found(), shown()]).toEqual([2, 3]);
    writeFileSync(file, FIRST.slice(0, 20));
    expect([found(), shown()]).toEqual(['damaged', 3]);
    writeFileSync(file, FIRST);
    expect([found(), shown()]).toEqual([1, 3]);
    // Each is another file.
    for (let i = 0; i < 2; i++) {
      replace(FIRST.slice(0, 20));
      expect([found(), shown()]).toEqual(['damaged', 3]);
    }
    rmSync(file);
    expect(found()).toBe('missing');
    replace(FIRST);
    expect([found(), shown()]).toEqual([1, 3]);
    follower.forget();
    expect([shown(), found(), shown()]).toEqual([1, 1, 1]);
    writeFileSync(file, FIRST + SECOND);
    expect([found(), shown()]).toEqual([2, 2]);
  });

  it('is read whole again if it was cut off or changed', () => {
    const { file, follower, found } = following(FIRST + SECOND);
    expect([found(), follower.wholeReads]).toEqual([2, 1]);
    truncateSync(file, FIRST.length);
    expect([found(), follower.wholeReads]).toEqual([1, 2]);
    appendFileSync(file, THIRD);
    expect(found()).toBe('damaged');
    expect([follower.good, follower.wholeReads]).toEqual([undefined, 2]);
  });

  it('is missing once it is removed, and is read whole if it comes back', () => {
    const { file, follower, found, replace } = following(FIRST);
    found();
    rmSync(file);
    expect([found(), follower.good, follower.file]).toEqual(['missing', undefined, undefined]);
    replace(FIRST);
    expect([found(), follower.wholeReads]).toEqual([1, 2]);
  });

  it('is damaged if it is older than what was committed, or than a copy that has the last line', () => {
    const { path, file, found, commit } = following(FIRST);
    commit(2);
    expect(found()).toBe('damaged');
    appendFileSync(file, SECOND);
    expect(found()).toBe(2);
    const other = following(FIRST + SECOND.slice(0, 40));
    writeFileSync(join(other.path, 'state.copy.json'), FIRST + SECOND);
    expect(other.found()).toBe('damaged');
    const equal = following(FIRST + SECOND.slice(0, 40));
    writeFileSync(join(equal.path, 'state.copy.json'), FIRST);
    equal.commit(1);
    expect(equal.found()).toBe(1);
    expect(path).not.toBe(other.path);
  });
});

describe('a state file that another one follows', () => {
  it('is read on where the new file goes on', () => {
    const { file, follower, found, replace } = following(FIRST);
    found();
    appendFileSync(file, SECOND);
    replace(encodeJournal(at(2), lineAfter(at(1)).seal, lineAfter(at(2))).bytes);
    expect([found(), follower.wholeReads]).toEqual([3, 1]);
    appendFileSync(file, lineAfter(at(3)).line);
    expect([found(), follower.wholeReads]).toEqual([4, 1]);
  });

  it('is read on there, and not whole, also if the new file grows while it is opened', () => {
    const { file, folder, follower, found, replace } = following(FIRST);
    found();
    replace(encodeJournal(at(1), encodeJournal(at(1), null).place.seal).bytes);
    const openJournal = folder.openJournal.bind(folder);
    vi.spyOn(folder, 'openJournal').mockImplementationOnce((name) => {
      appendFileSync(file, SECOND);
      return openJournal(name);
    });
    found();
    expect([found(), follower.wholeReads]).toEqual([2, 1]);
  });

  it.each<[string, string | Buffer, number]>([
    ['of another generation', encodeJournal(at(5), encodeJournal(at(1), null).place.seal).bytes, 5],
    ['after another state of the same generation', encodeJournal(at(1), 'another').bytes, 1],
    ['after none', encodeCheckpoint(at(1, 1)), 1],
  ])('is read whole if the new file is %s', (_, next, generation) => {
    const { follower, found, replace } = following(FIRST);
    found();
    replace(next);
    expect([found(), follower.wholeReads]).toEqual([generation, 2]);
  });

  it('is damaged if the new file is shorter than the state that it begins with', () => {
    const { found, replace } = following(FIRST);
    found();
    replace(encodeJournal(at(1), encodeJournal(at(1), null).place.seal).bytes.subarray(0, -9));
    expect(found()).toBe('damaged');
  });
});

describe('what this process has written itself', () => {
  it('is not read again', async () => {
    const { file, folder, follower, found } = following(FIRST);
    found();
    const good = follower.good!;
    const sealed = lineAfter(at(1));
    const write = () => {
      appendFileSync(file, sealed.line);
      return folder.version('state.json')!;
    };
    await follower.append(good, at(2), sealed, write);
    const own = follower.good;
    expect(own).toMatchObject({
      checkpoint: { generation: 2 },
      place: { end: FIRST.length + sealed.line.length },
    });
    expect(follower.look()).toBe(own);
    // It has moved on.
    await follower.append(good, at(9), sealed, () => '');
    expect(follower.good).toBe(own);
    appendFileSync(file, THIRD);
    expect([found(), follower.wholeReads]).toEqual([3, 1]);
  });

  it('is what it was, or is not read again, for a look in the middle of the write', async () => {
    const { file, folder, follower } = following(FIRST);
    const before = follower.look();
    const [sealed, next] = [lineAfter(at(1)), at(2)];
    const looks: FoundState[] = [];
    const write = () => {
      utimesSync(file, 1, 1);
      looks.push(follower.look());
      for (const part of [sealed.line.slice(0, 9), sealed.line.slice(9)]) {
        appendFileSync(file, part);
        looks.push(follower.look());
      }
      return folder.version('state.json')!;
    };
    await follower.append(follower.good!, next, sealed, write);
    expect(looks.slice(0, 2)).toEqual([before, before]);
    expect((looks[2] as { checkpoint?: Checkpoint }).checkpoint).toBe(next);
    expect([follower.look(), follower.wholeReads]).toEqual([looks[2], 1]);
  });

  it('is read with the line that another process has added before the write has returned', async () => {
    const { file, folder, follower, found } = following(FIRST);
    found();
    const sealed = lineAfter(at(1));
    const write = () => {
      appendFileSync(file, `${sealed.line}${lineAfter(at(2)).line}`);
      expect(found()).toBe(3);
      return folder.version('state.json')!;
    };
    await follower.append(follower.good!, at(2), sealed, write);
    expect([found(), follower.wholeReads]).toEqual([3, 1]);
  });

  it('is read whole once the write has failed and was taken back', async () => {
    const { file, follower, found } = following(FIRST);
    found();
    const sealed = lineAfter(at(1));
    const write = () => {
      appendFileSync(file, sealed.line);
      expect(found()).toBe(2);
      truncateSync(file, FIRST.length);
      return Promise.reject(new Error('no room'));
    };
    await expect(follower.append(follower.good!, at(2), sealed, write)).rejects.toThrow('no room');
    expect([found(), follower.wholeReads]).toEqual([1, 2]);
  });

  it('is what another process wrote in the same place, once the own write has failed', async () => {
    const { file, follower, found } = following(FIRST);
    found();
    const own = lineAfter(at(1));
    const other = lineAfter(at(1), { ...at(2), writtenAt: '2026-01-01T00:00:00.001Z' });
    expect(other.line).toHaveLength(own.line.length);
    const write = () => {
      appendFileSync(file, other.line);
      follower.look();
      return Promise.reject(new Error('the lock is another one'));
    };
    await expect(follower.append(follower.good!, at(2), own, write)).rejects.toThrow('the lock');
    expect(follower.look()).toMatchObject({ checkpoint: { writtenAt: '2026-01-01T00:00:00.001Z' } });
  });

  it('is read whole for a look that finds less than there was before the write', async () => {
    const { file, folder, follower, found } = following(`${FIRST}${SECOND}`);
    found();
    const sealed = lineAfter(at(2));
    const write = () => {
      truncateSync(file, FIRST.length);
      expect(found()).toBe(1);
      return folder.version('state.json')!;
    };
    await follower.append(follower.good!, at(3), sealed, write);
    expect([found(), follower.wholeReads]).toEqual([1, 2]);
  });

  it('is not read again in a new file, unless that is another one by now', () => {
    const { folder, follower, found, replace } = following(FIRST);
    found();
    const before = follower.good;
    const { bytes, place } = encodeJournal(at(2), null);
    replace(bytes);
    const next = { kind: 'good', checkpoint: at(2), place } as const;
    follower.noteReplaced(undefined, next, folder.version('state.json')!);
    expect(follower.good).toBe(before);
    follower.noteReplaced(before, next, folder.version('state.json')!);
    expect([follower.good, follower.look()]).toEqual([next, next]);
    expect(follower.file).toBeDefined();
    replace(encodeCheckpoint(at(3)));
    follower.noteReplaced(next, next, 'another version');
    expect(follower.good).toBeUndefined();
    expect(found()).toBe(3);
  });
});

describe('a long state file', () => {
  const long = encodeCheckpoint(at(1, 1000));

  it('is read beforehand, in slices, once', async () => {
    expect(long.length).toBeGreaterThan(LONG);
    const { follower, found, file } = following(long);
    const preparing = follower.prepare();
    expect(preparing).toBeInstanceOf(Promise);
    expect(follower.prepare()).toBe(preparing);
    expect(follower.good).toBeUndefined();
    await preparing;
    expect([follower.good?.checkpoint.generation, follower.wholeReads]).toEqual([1, 1]);
    expect(follower.prepare()).toBeUndefined();
    appendFileSync(file, lineAfter(at(1, 1000)).line);
    expect([found(), follower.wholeReads]).toEqual([2, 1]);
  });

  it('is not read beforehand if it is short, missing or no file', () => {
    const { path, follower, file } = following(FIRST);
    expect(follower.prepare()).toBeUndefined();
    rmSync(file);
    expect(follower.prepare()).toBeUndefined();
    mkdirSync(join(path, 'state.json'));
    expect(follower.prepare()).toBeUndefined();
    expect(follower.good).toBeUndefined();
  });

  it('is read by a look if it is damaged, older than what was committed, or forgotten meanwhile', async () => {
    const damaged = following(`${long.slice(0, 70_000)}!${long.slice(70_001)}`);
    const first = damaged.follower.prepare();
    await first;
    expect(damaged.follower.prepare()).not.toBe(first);
    await damaged.follower.prepare();
    expect(damaged.follower.good).toBeUndefined();
    expect(damaged.found()).toBe('damaged');
    const older = following(long);
    older.commit(2);
    await older.follower.prepare();
    expect(older.follower.good).toBeUndefined();
    const forgotten = following(long);
    const preparing = forgotten.follower.prepare();
    forgotten.follower.forget();
    await preparing;
    expect([forgotten.follower.good, forgotten.follower.wholeReads]).toEqual([undefined, 0]);
    expect(forgotten.follower.prepare()).toBeInstanceOf(Promise);
    const tail = following(long + SECOND.slice(0, 40));
    await tail.follower.prepare();
    expect(tail.follower.good).toBeUndefined();
  });
});
