// needs: nothing
// The own file on a disk that fails: it says what it said before, and is written whole next time.
import { crc32 } from 'node:zlib';
import { beforeEach, describe, expect, it } from 'vitest';
import type { PodAssignment } from '../../lib/account/pod-assignment.js';
import { NumalignError } from '../../lib/base/errors.js';
import type { NativeFolder } from '../../lib/base/native-files.js';
import { DEFAULT_SETTINGS } from '../../lib/decision/machine-settings.js';
import { CpuSet } from '../../lib/machine/cpu-set.js';
import { decodeOwnerFile } from '../../lib/state/format/owner-file.js';
import { OwnOwner } from '../../lib/state/owners/own-owner.js';
import type { Header } from '../../lib/state/owners/owner-record.js';
import { thrownBy } from '../support/error-of.js';
import { kubeletRecord } from '../support/kubelet-records.js';
import { quiet } from '../support/quiet.js';
import { podOf } from '../support/quiet-world.js';

// The file, and what is done to it. A step that fails has done nothing.
let bytes: Buffer;
let steps: string[];
let failing: string[];
let seal: [checksum: number, generation: number];
let isCurrent: boolean;
let closed: number;

function step(name: string, change: () => void): void {
  steps.push(name);
  if (failing[0] === name) {
    failing.shift();
    throw new Error('the disk is full');
  }
  change();
}

const lock = () => ({
  fd: 3,
  write: (all: string | Buffer) => step('write', () => (bytes = Buffer.from(all))),
  writeAt: (at: number, text: string) =>
    step('append', () => (bytes = Buffer.concat([bytes.subarray(0, at), Buffer.from(text)]))),
  cut: (size: number) => step('cut', () => (bytes = bytes.subarray(0, size))),
  append: (at: number, lines: string, last: string, before: number, generation: number) => {
    if (bytes.length !== at + last.length) return undefined;
    step('append', () => (bytes = Buffer.concat([bytes.subarray(0, at), Buffer.from(`${lines}${last}`)])));
    expect(before).toBe(crc32(bytes.subarray(0, at)));
    const checksum = crc32(lines, before);
    seal = [crc32(last, checksum), generation];
    if (failing[0] === 'seal') throw failing.shift() && noLock;
    return checksum;
  },
  seal: (...shown: typeof seal) => {
    seal = shown;
  },
  isCurrent: () => isCurrent,
  close: () => void closed++,
});

const noLock = new NumalignError('ERR_SYSCALL', 'no lock', { syscall: 'fcntl', errno: 37 });

const header = (generation: number, more: Partial<Header> = {}): Header => ({
  ...{ bootId: 'this', generation, settings: DEFAULT_SETTINGS },
  ...more,
});

function newOwner() {
  const folder = {
    createOwner: (_: string, text: string, ...[, , generation]: [bigint, bigint, number]) => {
      steps.push('make');
      bytes = Buffer.from(text);
      seal = [crc32(bytes), generation];
      isCurrent = true;
      return lock();
    },
    read: () => bytes,
  } as unknown as NativeFolder;
  const owner = new OwnOwner(folder, '/tmp/state', header(1));
  const pod = (uid: string, name = uid): PodAssignment => {
    const { uuid } = owner.record;
    return {
      ...podOf(uid, uuid, CpuSet.of(Number(uid)), quiet('0').request),
      name,
      quiet: undefined as never,
    };
  };
  const [one, two] = [pod('1'), pod('2')];
  owner.write(header(2), [one], []);
  /** What is done, and what the file says then, which its seal confirms. */
  const does = (act: () => void) => {
    steps = [];
    const error = thrownBy(act);
    const { pods, generation, settings, bootId, kubelet } = decodeOwnerFile(bytes);
    expect(seal[0]).toBe(crc32(bytes));
    const says = pods.map(({ uid, name }) => (uid === name ? uid : name));
    expect(owner.file.pods.map(({ uid, name }) => (uid === name ? uid : name))).toEqual(says);
    return { steps, says, generation, settings, bootId, kubelet, failed: error !== undefined };
  };
  return { owner, pod, one, two, does };
}

beforeEach(() => {
  [steps, failing, closed] = [[], [], 0];
});

describe('a file that claims', () => {
  it('grows by a line for each grant that comes, changes or goes, and by none for what it says', () => {
    const { owner, one, two, pod, does } = newOwner();
    expect(does(() => owner.write(header(3), [one, two], []))).toMatchObject({
      steps: ['append'],
      says: ['1', '2'],
    });
    expect(does(() => owner.write(header(4), [pod('1'), two], ['7']))).toMatchObject({
      steps: [],
      generation: 3,
    });
    const renamed = pod('1', 'renamed');
    expect(does(() => owner.write(header(5), [renamed], ['2']))).toMatchObject({
      ...{ steps: ['append'], says: ['renamed'], generation: 5 },
    });
    expect(owner.holds(one)).toBe(true);
    expect(owner.holds({ ...one, owner: { ...one.owner, uuid: 'another' } })).toBe(false);
    expect([owner.holdsGrant, owner.keepsKubelet]).toEqual([true, false]);
    expect(does(() => owner.agree(header(6), []))).toMatchObject({ steps: ['append'], says: [] });
    expect(owner.holdsGrant).toBe(false);
  });

  it('takes the settings of the state, and is written whole for another boot id', () => {
    const { owner, one, two, does } = newOwner();
    const settings = { ...DEFAULT_SETTINGS, strictCPUReservation: true };
    expect(does(() => owner.write(header(3, { settings }), [one, two], []))).toMatchObject({
      ...{ steps: ['append'], settings: { strictCPUReservation: true } },
    });
    const same = header(4, { settings });
    expect(does(() => owner.write(same, [one], ['2']))).toMatchObject({ steps: ['append'] });
    const another = header(5, { settings, bootId: 'another' });
    expect(does(() => owner.write(another, [one, two], []))).toMatchObject({
      steps: ['write'],
      bootId: 'another',
    });
  });

  it('is written whole if others have changed its length, or if it has grown', () => {
    const { owner, one, two, pod, does } = newOwner();
    bytes = Buffer.concat([bytes, Buffer.from('x')]);
    expect(does(() => owner.write(header(3), [one, two], []))).toMatchObject({
      steps: ['write'],
      says: ['1', '2'],
    });
    const long = 'x'.repeat(10_000);
    expect(does(() => owner.write(header(4), [pod('1', `a${long}`)], []))).toMatchObject({
      steps: ['append'],
    });
    expect(does(() => owner.write(header(5), [pod('1', `b${long}`)], []))).toMatchObject({
      steps: ['append'],
    });
    expect(does(() => owner.write(header(6), [pod('1', 'c')], []))).toMatchObject({
      ...{ steps: ['write'], says: ['c', '2'] },
    });
    expect(does(() => owner.write(header(7), [pod('1', 'd')], []))).toMatchObject({ steps: ['append'] });
  });

  it('says what it said before if a line does not fit', () => {
    const { owner, one, two, does } = newOwner();
    failing = ['append'];
    const failed = does(() => owner.write(header(3), [one, two], []));
    expect(failed).toMatchObject({
      failed: true,
      says: ['1'],
      steps: ['append', 'append', 'cut'],
      generation: 2,
    });
    expect(does(() => owner.write(header(4), [two], []))).toMatchObject({
      steps: ['append'],
      says: ['1', '2'],
    });
  });

  it('is written whole, and so is shorter, if a line that only gives up does not fit', () => {
    const { owner, two, does } = newOwner();
    owner.write(header(3), [two], []);
    failing = ['append'];
    expect(does(() => owner.write(header(4), [], ['2']))).toMatchObject({
      ...{ failed: false, says: ['1'], steps: ['append', 'append', 'cut', 'write'], generation: 4 },
    });
  });

  it('is written whole next time if what it said before does not fit either', () => {
    const { owner, two, does } = newOwner();
    failing = ['append', 'append'];
    steps = [];
    expect(thrownBy(() => owner.write(header(3), [two], []))).toBeDefined();
    expect(steps).toEqual(['append', 'append']);
    expect(does(() => owner.write(header(4), [], []))).toMatchObject({
      steps: ['write'],
      says: ['1'],
      generation: 4,
    });
    expect(does(() => owner.write(header(5), [], []))).toMatchObject({ steps: [] });
  });

  it('is written whole next time if its seal is refused', () => {
    const { owner, two, does } = newOwner();
    failing = ['seal'];
    steps = [];
    expect(thrownBy(() => owner.write(header(3), [two], []))).toBe(noLock);
    expect(steps).toEqual(['append', 'append', 'cut']);
    expect(does(() => owner.write(header(4), [], []))).toMatchObject({ steps: ['write'], says: ['1'] });
    failing = ['seal'];
    expect(does(() => owner.write(header(5), [], ['1']))).toMatchObject({
      ...{ steps: ['append', 'append', 'cut', 'write'], says: [], failed: false },
    });
  });

  it('is written whole as it was if it cannot be written whole', () => {
    const { owner, one, two, does } = newOwner();
    failing = ['write'];
    expect(does(() => owner.writeAll(header(3), [two]))).toMatchObject({
      ...{ failed: true, says: ['1'], steps: ['write', 'write'], generation: 2 },
    });
    expect(does(() => owner.writeAll(header(4), [two]))).toMatchObject({ steps: ['write'], says: ['2'] });
    failing = ['write', 'write'];
    steps = [];
    expect(thrownBy(() => owner.writeAll(header(5), [one]))).toBeDefined();
    expect(does(() => owner.write(header(6), [], []))).toMatchObject({ steps: ['write'], says: ['2'] });
  });
});

describe('the record of what the kubelet has given out', () => {
  it('is written once for each change', () => {
    const { owner, does } = newOwner();
    const record = { ...kubeletRecord('3'), keeper: owner.record };
    const kept = does(() => owner.keep(header(3), record));
    expect(kept).toMatchObject({ steps: ['write'], says: ['1'], kubelet: { pods: record.pods } });
    expect(owner.keepsKubelet).toBe(true);
    expect(does(() => owner.keep(header(4), record)).steps).toEqual([]);
    expect(does(() => owner.keep(header(4), { ...record })).steps).toEqual([]);
    expect(does(() => owner.keep(header(5), null))).toMatchObject({ steps: ['write'], kubelet: null });
    expect(does(() => owner.keep(header(6), null)).steps).toEqual([]);
    failing = ['write'];
    expect(does(() => owner.keep(header(7), record))).toMatchObject({ failed: true, kubelet: null });
    expect(owner.keepsKubelet).toBe(false);
  });
});

describe('a file that others have removed or changed', () => {
  it('is made or written again, and its locks are kept until the owner ends', () => {
    const { owner, does } = newOwner();
    expect(does(() => expect(owner.reassert()).toBe(false)).steps).toEqual([]);
    bytes = Buffer.from(`${bytes}x`);
    expect(does(() => expect(owner.reassert()).toBe(true))).toMatchObject({ steps: ['write'], says: ['1'] });
    isCurrent = false;
    expect(does(() => expect(owner.reassert()).toBe(true))).toMatchObject({ steps: ['make'], says: ['1'] });
    expect(does(() => owner.write(header(3), [], ['1']))).toMatchObject({ steps: ['append'], says: [] });
    bytes = Buffer.from('');
    failing = ['write'];
    expect(thrownBy(() => owner.reassert())).toBeDefined();
    expect(does(() => owner.write(header(4), [], []))).toMatchObject({ steps: ['write'], says: [] });
    owner.close();
    expect(closed).toBe(2);
  });
});
