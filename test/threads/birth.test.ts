// needs: machine
// Tasks that start while a birth is open, and the state of this thread afterwards.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { affinity } from '../../lib/entries/diagnostics.js';
import { CpuSet } from '../../lib/index.js';
import { bornOn, isBirthOpen, openBirth, openTrial } from '../../lib/threads/birth.js';
import { ALL, EVERYTHING } from './everything.js';

const mine = () => [readFileSync('/proc/thread-self/comm', 'utf8'), String(affinity())];
const maskOfChild = () =>
  spawnSync('sh', ['-c', 'grep Cpus_allowed_list /proc/self/status'], { encoding: 'utf8' })
    .stdout.split('\t')[1]!
    .trim();

describe.runIf(ALL.size > 1)('a birth', () => {
  const [low, high] = ALL.toArray().map((cpu) => CpuSet.of(cpu)) as [CpuSet, CpuSet];

  it('starts tasks on its CPUs, and restores this thread', () => {
    const before = mine();
    const { value, tid } = bornOn(EVERYTHING, high, maskOfChild);
    expect([value, tid]).toEqual([String(high), 0]);
    expect(mine()).toEqual(before);
  });

  it('ends with those in it, whichever is closed first', () => {
    const before = mine();
    const outer = openBirth(EVERYTHING, low);
    const inner = openBirth(EVERYTHING, high);
    expect([maskOfChild(), isBirthOpen()]).toEqual([String(high), true]);
    outer();
    expect([mine(), isBirthOpen()]).toEqual([before, false]);
    expect([inner(), outer()]).toEqual([0, 0]);
    expect(mine()).toEqual(before);
  });

  it('continues after an inner one has ended', () => {
    const outer = openBirth(EVERYTHING, low);
    openBirth(EVERYTHING, high)();
    expect(maskOfChild()).toBe(String(low));
    outer();
  });

  it('of something that may fail ends when another is opened', () => {
    const before = mine();
    const trial = openTrial(EVERYTHING, low);
    expect(maskOfChild()).toBe(String(low));
    const next = openBirth(EVERYTHING, high);
    trial();
    expect(maskOfChild()).toBe(String(high));
    next();
    expect([mine(), isBirthOpen()]).toEqual([before, false]);
  });

  it('ends if its task fails', () => {
    const before = mine();
    const fail = () => {
      throw new Error('no');
    };
    expect(() => bornOn(EVERYTHING, low, fail)).toThrow('no');
    expect(mine()).toEqual(before);
  });
});
