// needs: nothing
import { expect, it } from 'vitest';
import { recent } from '../../../lib/quiet/parts/interrupts.js';

it('a value is kept for a while, and then read again', () => {
  let [time, reads] = [5, 0];
  const read = recent(
    () => ++reads,
    10,
    () => time,
  );
  expect([read(), read()]).toEqual([1, 1]);
  time = 14.9;
  expect(read()).toBe(1);
  time = 15;
  expect([read(), read()]).toEqual([2, 2]);
});
