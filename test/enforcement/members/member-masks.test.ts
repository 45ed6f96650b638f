// needs: machine
import { describe, expect, it } from 'vitest';
import { decodeMasks, encodeMasks } from '../../../lib/enforcement/members/member-masks.js';
import { CpuSet } from '../../../lib/index.js';

const { words: none } = CpuSet.EMPTY;

describe('the own masks of a member’s threads', () => {
  it('are recorded and read back, with the threads', () => {
    const [chosen, applied] = [CpuSet.parse('0-3').words, CpuSet.parse('1-3').words];
    const rows = [
      { tid: 7, chosen, applied, asked: applied },
      { tid: 8, chosen, applied, asked: chosen },
      { tid: 9, chosen: none, applied: none, asked: none },
    ];
    expect(decodeMasks('p', encodeMasks('p', rows))).toEqual(rows);
    expect(decodeMasks('another', encodeMasks('p', rows))).toEqual([]);
    expect(decodeMasks('p', '{"process":"p","threads":[],"seen":["x"]}')).toEqual([]);
  });
});
