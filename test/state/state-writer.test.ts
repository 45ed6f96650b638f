// needs: nothing
// A commit, step by step, on a disk that fails at any of them.
import { constants } from 'node:os';
import { describe, expect, it } from 'vitest';
import { type Assignments, emptyAssignments } from '../../lib/account/assignments.js';
import { NumalignError } from '../../lib/base/errors.js';
import { DEFAULT_SETTINGS } from '../../lib/decision/machine-settings.js';
import type { GoodState } from '../../lib/state/files/state-files.js';
import { encodeJournal } from '../../lib/state/format/journal.js';
import { StateWriter } from '../../lib/state/state-writer.js';
import { errorOf } from '../support/error-of.js';

const { EACCES, EIO, EISDIR, ENOSPC, ESTALE } = constants.errno;
const EMPTY = emptyAssignments(DEFAULT_SETTINGS);
const NEXT: Assignments = { ...EMPTY, cpus: [[0, 0, 0, 0]] };

const refusal = (syscall: string, errno: number) =>
  new NumalignError('ERR_SYSCALL', 'no', { errno, syscall });

/** A writer of a state of generation 4; each of its steps fails with what `failing` says. */
function writing({ isPlain = false, isEmpty = false } = {}) {
  const checkpoint = { generation: 4, bootId: 'this', writtenAt: '', assignments: EMPTY };
  const { place } = encodeJournal(checkpoint, null);
  const good: GoodState = { kind: 'good', checkpoint, place: isPlain ? { ...place, seal: '' } : place };
  const steps: string[] = [];
  const failing: Record<string, Error[]> = {};
  const step = (name: string, ...details: unknown[]) => {
    steps.push([name, ...details].join(' '));
    const error = failing[name]?.shift();
    if (error) throw error;
  };
  const world = { finds: false as boolean | Error, claimed: undefined as Assignments | undefined };
  const file = {
    append: async (
      at: number,
      line: string,
      _: unknown,
      __: unknown,
      isLast: boolean,
      copy: string,
      n: number,
    ) => {
      expect([at, JSON.parse(line).generation, copy]).toEqual([place.end, 5, 'state.copy.json']);
      step('append', isLast, n);
      return 'version';
    },
  };
  const reader = {
    bootId: 'this',
    journal: {
      highest: 4,
      good: isEmpty ? undefined : good,
      cutTail: () => step('cut'),
      append: async (
        before: GoodState,
        { generation }: { generation: number },
        _: unknown,
        write: (to: typeof file, at: number) => Promise<string>,
      ) => {
        expect(before).toBe(good);
        await write(file, place.end);
        step('appended', generation);
      },
      noteReplaced: (before: GoodState | undefined, { checkpoint }: GoodState) => {
        expect(before).toBe(isEmpty ? undefined : good);
        step('replaced', checkpoint.generation);
      },
    },
    finds: () => {
      if (world.finds instanceof Error) throw world.finds;
      return world.finds;
    },
    noteCommitted: ({ generation }: { generation: number }) => step('committed', generation),
    load: () => good,
  };
  const owners = {
    claim: (generation: number, before: Assignments | undefined) => {
      world.claimed = before;
      step('claim', generation);
      return (isCommitted: boolean) => step('settle', isCommitted);
    },
    follow: () => step('follow'),
  };
  const folder = {
    replaceDurably: async (
      name: string,
      copy: string,
      bytes: Buffer,
      stamp: number,
      _: unknown,
      isLast: boolean,
    ) => {
      expect([name, copy, stamp]).toEqual(['state.json', 'state.copy.json', 5]);
      step('replace', isLast, bytes.toString().split('\n').length - 1);
      return 'version';
    },
    lockNumber: () => 0,
    read: (name: string) => {
      step('look at', name);
      return undefined;
    },
  };
  const lock = { setNumber: (number: number) => step('number', number) };
  const writer = new StateWriter('/tmp/state', folder as never, owners as never, reader as never);
  const commit = (more: { bootId?: string; before?: Assignments | null; isLast?: boolean } = {}) => {
    const { bootId = 'this', before = EMPTY, isLast = false } = more;
    steps.length = 0;
    return writer.commit({ bootId, before: before ?? undefined, next: NEXT, lock: lock as never, isLast });
  };
  return { commit, steps, failing, world, writer };
}

describe('a commit', () => {
  it('claims, appends a line, and follows', async () => {
    const { commit, steps, world } = writing();
    await commit();
    expect(steps).toEqual([
      ...['claim 4', 'cut', 'append false 5', 'appended 5', 'settle true', 'committed 5', 'follow'],
    ]);
    expect(world.claimed).toBe(EMPTY);
    await commit({ isLast: true });
    expect(steps).toEqual(['claim 4', 'cut', 'append true 5', 'appended 5', 'settle true', 'committed 5']);
  });

  it('claims nothing in a state of another boot', async () => {
    const { commit, steps } = writing();
    await commit({ bootId: 'earlier' });
    expect(steps).toEqual(['cut', 'append false 5', 'appended 5', 'committed 5']);
  });

  it.each([
    ['the first', { isEmpty: true }, {}, 2],
    ['that of a state that is rebuilt', {}, { before: null }, 2],
    ['that after a file which takes no lines', { isPlain: true }, {}, 3],
  ])('writes the whole file if it is %s', async (_, how, more, lines) => {
    const { commit, steps } = writing(how);
    await commit(more);
    expect(steps.slice(1, 3)).toEqual([`replace false ${lines}`, 'replaced 5']);
    await commit({ ...more, isLast: true });
    expect(steps.slice(1, 3)).toEqual([`replace true ${lines}`, 'replaced 5']);
  });

  it.each([
    ['fdatasync', EIO],
    ['open', EACCES],
    ['open', EISDIR],
    ['open', ESTALE],
  ])(
    'writes the whole file if the old one is at fault, as %s shows with errno %i',
    async (syscall, errno) => {
      const { commit, steps, failing } = writing();
      failing.append = [refusal(syscall, errno)];
      await commit();
      expect(steps.slice(2, 6)).toEqual(['append false 5', 'replace false 3', 'replaced 5', 'settle true']);
    },
  );

  it.each([
    ['write', ENOSPC],
    ['write', EACCES],
    ['open', EIO],
  ])('fails if another file would not help, as %s shows with errno %i', async (syscall, errno) => {
    const { commit, steps, failing } = writing();
    failing.append = [refusal(syscall, errno)];
    expect(await errorOf(() => commit())).toBeInstanceOf(NumalignError);
    expect(steps.slice(2)).toEqual(['append false 5', 'settle false']);
  });

  it('is no success at a bug', async () => {
    const { commit, steps, failing } = writing();
    const bug = new TypeError('bug');
    failing.append = [bug];
    expect(await errorOf(() => commit())).toBe(bug);
    expect(steps.slice(2)).toEqual(['append false 5', 'settle false']);
  });

  it('counts if the file has it although the disk has failed, and is written whole the next time', async () => {
    const { commit, steps, failing, world } = writing();
    failing.append = [refusal('write', EIO)];
    world.finds = true;
    await commit();
    expect(steps.slice(2)).toEqual(['append false 5', 'number 5', 'settle true', 'committed 5', 'follow']);
    await commit();
    expect(steps.slice(1, 3)).toEqual(['replace false 3', 'replaced 5']);
    await commit();
    expect(steps[2]).toBe('append false 5');
  });

  it('keeps its claim if nothing shows whether the file has it', async () => {
    const { commit, steps, failing, world } = writing();
    failing.append = [refusal('write', EIO)];
    world.finds = refusal('open', EIO);
    expect(await errorOf(() => commit())).toBeInstanceOf(NumalignError);
    expect(steps.slice(2)).toEqual(['append false 5']);
  });

  it('is not written if its claim fails', async () => {
    const { commit, steps, failing } = writing();
    failing.claim = [refusal('write', ENOSPC)];
    expect(await errorOf(() => commit())).toBeInstanceOf(NumalignError);
    expect(steps).toEqual(['claim 4']);
  });

  it('is written again once, past folders with the names of its files', async () => {
    const { commit, steps, failing } = writing({ isEmpty: true });
    failing.replace = [refusal('rename', EISDIR)];
    await commit();
    expect(steps.slice(1, 6)).toEqual([
      ...['replace false 2', 'look at state.copy.json.new', 'look at state.json.new'],
      ...['replace false 2', 'replaced 5'],
    ]);
    failing.replace = [refusal('rename', EIO)];
    expect(await errorOf(() => commit())).toBeInstanceOf(NumalignError);
    expect(steps.slice(1)).toEqual(['replace false 2', 'settle false']);
  });
});
