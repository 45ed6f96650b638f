import { describe, expect, it, onTestFinished } from 'vitest';
import { choicesOf, decodeMasks, encodeMasks } from '../../lib/enforcement/member-masks.js';
import { affinity } from '../../lib/entries/diagnostics.js';
import { CpuSet, pin } from '../../lib/index.js';

const NOBODY = 2 ** 22 - 1;
const all = affinity();
const { words: none } = CpuSet.EMPTY;

describe('what the threads of a member have chosen', () => {
  it('is written down and read again, with who was there', () => {
    const [chosen, applied] = [CpuSet.parse('0-3').words, CpuSet.parse('1-3').words];
    const rows = [
      { tid: 7, chosen, applied, asked: applied },
      { tid: 8, chosen, applied, asked: chosen },
      { tid: 9, chosen: none, applied: none, asked: none },
    ];
    expect(decodeMasks('p', encodeMasks('p', rows), true)).toEqual(rows);
    expect(decodeMasks('another', encodeMasks('p', rows), true)).toEqual([]);
    expect(decodeMasks('p', '{"process":"p","threads":[],"seen":["x"]}', true)).toEqual([]);
  });

  it('is what another has chosen that was given the same mask, unless it was there before', () => {
    const one = CpuSet.of(all.first!);
    pin(one, { threads: process.pid });
    onTestFinished(() => void pin(all, { threads: process.pid }));
    const given = { tid: NOBODY, chosen: all.words, applied: one.words, asked: one.words };
    const seen = { tid: process.pid, chosen: none, applied: none, asked: none };
    const chosen = (known: Parameters<typeof choicesOf>[1]) => {
      const choices = choicesOf(process.pid, known, () => false, undefined, all);
      return String(new CpuSet(choices.find(({ tid }) => tid === process.pid)!.chosen));
    };
    expect(chosen([given])).toBe(String(all));
    expect(chosen([given, seen])).toBe(String(one));
  });
});
