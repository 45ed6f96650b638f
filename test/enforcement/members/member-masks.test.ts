// needs: machine
import { spawn } from 'node:child_process';
import { constants } from 'node:os';
import { describe, expect, it, onTestFinished } from 'vitest';
import { native } from '../../../lib/base/native.js';
import { affinity } from '../../../lib/entries/diagnostics.js';
import { CpuSet } from '../../../lib/index.js';

const { words: none } = CpuSet.EMPTY;
const [chosen, applied] = [CpuSet.parse('0-3').words, CpuSet.parse('1-3').words];

describe('the own masks of a member’s threads', () => {
  it('are recorded and read back, with the threads', () => {
    const rows = [
      { tid: 7, chosen, applied, asked: applied },
      { tid: 8, chosen, applied, asked: chosen },
      { tid: 9, chosen: none, applied: none, asked: none },
    ];
    const record = native.memberRecord('p', rows);
    expect(record).toBe('{"process":"p","threads":[[7,"0-3","1-3"],[8,"0-3","1-3","0-3"]],"seen":[9]}');
    expect(native.memberThreads('p', record)).toEqual(rows);
    expect(native.memberThreads('another', record)).toEqual([]);
  });

  it('need no record without threads', () => {
    expect(native.memberRecord('p', [])).toBe('');
    expect(native.memberThreads('p', '')).toEqual([]);
  });

  it.each([
    '{"process":"p","threads":[],"seen":["x"]}',
    '{"process":"p","threads":[[7,"0-3"]]}',
    '{"process":"p","threads":[[7,"0-3","x"]]}',
    '{"process":"p","threads":[[7.5,"0-3","1"]]}',
    '{"process":"p","threads":[[7,"0-3","1"]]',
    '{"process":"p","seen":[9]}',
    '{"threads":[[7,"0-3","1"]]}',
  ])('are unknown after damage: %s', (record) => {
    expect(native.memberThreads('p', record)).toEqual([]);
  });

  it('are read from a record with members of a later version', () => {
    const record = '{"later":{"a":[1]},"process":"p","threads":[[7,"0-3","1-3","1-3","2",{}]]}';
    expect(native.memberThreads('p', record)).toEqual([{ tid: 7, chosen, applied, asked: applied }]);
  });
});

const isRoot = process.getuid?.() === 0;
const UNPRIVILEGED = 65_534;

describe.runIf(isRoot && affinity().size > 1)('a plan for a member that the caller may not move', () => {
  it('is refused, and to carry it out moves nothing, once', () => {
    const { pid } = spawn('sleep', ['1000']);
    onTestFinished(() => void process.kill(pid!, 'SIGKILL'));
    const before = affinity(pid);
    const taken = CpuSet.of(before.first!);
    const call = {
      ...{ pid: pid!, process: 'p', known: '', isAsked: false, unpinned: [], grants: [], onlyNarrow: false },
      ...{ limit: none, taken: taken.words, pool: before.difference(taken).words, granted: none },
    };
    const stuck = [{ tid: pid, errno: constants.errno.EPERM, cpus: before.words }];
    process.seteuid!(UNPRIVILEGED);
    try {
      expect(native.planMember(call)).toMatchObject({ isRefused: true, moved: 0, stuck });
      expect(native.moveMember(pid!, true)).toMatchObject({ moved: 0, stuck, putBack: undefined });
      expect(native.moveMember(pid!, true)).toBeUndefined();
    } finally {
      process.seteuid!(0);
    }
    expect(String(affinity(pid))).toBe(String(before));
    // Root may: the refusal is no fact about the process.
    expect(native.planMember(call)).toMatchObject({ isRefused: false, moved: 1 });
    expect(native.moveMember(pid! + 1, true)).toBeUndefined();
    expect(String(affinity(pid))).toBe(String(before));
  });
});
