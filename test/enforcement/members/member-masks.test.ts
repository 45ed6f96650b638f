// needs: machine
import { describe, expect, it } from 'vitest';
import { native } from '../../../lib/base/native.js';
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
