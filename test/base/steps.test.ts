// needs: agents
// Long work in parts.
import { expect, it } from 'vitest';
import { finish, inSlices, type Steps, turnIfDue } from '../../lib/base/steps.js';

function* sum(numbers: readonly number[]): Steps<number> {
  let total = 0;
  for (const number of numbers) {
    if (number < 0) throw new RangeError(`${number}`);
    total += number;
    yield;
  }
  return total;
}

it('has the same result in one go and in slices', async () => {
  expect(finish(sum([1, 2, 3]))).toBe(6);
  expect(await inSlices(sum([1, 2, 3]))).toBe(6);
  expect(() => finish(sum([1, -2]))).toThrow(RangeError);
  await expect(inSlices(sum([1, -2]))).rejects.toThrow(RangeError);
});

it('leaves turns of the event loop to others between slices', async () => {
  let isTurned = false;
  setTimeout(() => {
    isTurned = true;
  });
  function* untilTurned(): Steps<string> {
    while (!isTurned) yield;
    return 'turned';
  }
  expect(await inSlices(untilTurned())).toBe('turned');
});

it('lets no call overtake one that waits for a turn of the event loop', async () => {
  await new Promise((resolve) => setImmediate(resolve));
  const order: string[] = [];
  const call = async (name: string) => {
    await turnIfDue();
    order.push(name);
  };
  turnIfDue();
  // In the turn that ends the wait, before the call that waits.
  const later = new Promise((resolve) => setImmediate(() => resolve(call('later'))));
  while (turnIfDue() === undefined);
  await Promise.all([call('earlier'), later]);
  expect(order).toEqual(['earlier', 'later']);
});

it('lets calls in a row after a turn of the event loop go on without one for each', async () => {
  await new Promise((resolve) => setImmediate(resolve));
  let turn = turnIfDue();
  while (turn === undefined) turn = turnIfDue();
  await turn;
  await null;
  expect(turnIfDue()).toBeUndefined();
});
