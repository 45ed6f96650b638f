// needs: process
// How often listeners get notices of a stream of commits.
import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause, setImmediate as turn } from 'node:timers/promises';
import fc from 'fast-check';
import { expect, it, onTestFinished, vi } from 'vitest';
import { FolderWatch } from '../../lib/state/files/folder-watch.js';
import { LookBudget } from '../../lib/state/files/look-budget.js';
import { makeStateDir } from '../support/state-dir.js';

const AT_ONCE = 10;
const PERIOD_MS = 1000;

function makeWatch() {
  const folder = makeStateDir();
  mkdirSync(folder);
  const file = join(folder, 'state.json');
  writeFileSync(file, '');
  const watch = new FolderWatch(folder, 'state.json');
  const read = () => readFileSync(file, 'utf8').length;
  /** Counts the calls of a listener, with the length of the file at each. */
  const listen = (listening = {}) => {
    const heard = { times: 0, length: -1 };
    const look = () => Object.assign(heard, { times: heard.times + 1, length: read() });
    const end = watch.add(look, listening);
    onTestFinished(end);
    return Object.assign(heard, { end });
  };
  const commit = () => appendFileSync(file, '.');
  return { watch, listen, commit, read };
}

/** Commits until a listener that is called at once has seen all of them. */
async function stream(commit: () => void, heard: { times: number }, times: number) {
  for (let i = 0; i < times; i++) {
    const before = heard.times;
    commit();
    while (heard.times === before) await turn();
  }
}

it('a budget allows at most ten looks and one more per second, and has one when it says so', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.nat(2400), fc.boolean()), { maxLength: 60 }), (steps) => {
      const budget = new LookBudget();
      const looks: number[] = [];
      let now = 1e6;
      for (const [wait, isPatient] of steps) {
        now += wait;
        const left = budget.take(now);
        if (left === 0) looks.push(now);
        else if (isPatient) {
          now += left;
          expect(budget.take(now)).toBe(0);
          looks.push(now);
        }
      }
      for (let i = 0; i < looks.length; i++) {
        for (let j = i; j < looks.length; j++)
          expect(j - i + 1).toBeLessThanOrEqual(AT_ONCE + (looks[j]! - looks[i]!) / PERIOD_MS + 1e-9);
      }
    }),
  );
});

it('a budget that was unused for long has ten looks at once', () => {
  const budget = new LookBudget();
  for (const begin of [0, 1e5]) {
    const waits = Array.from({ length: AT_ONCE + 1 }, () => budget.take(begin));
    expect(waits).toEqual([...new Array(AT_ONCE).fill(0), PERIOD_MS]);
  }
});

it('a budget says how long it is until the next look', () => {
  const budget = new LookBudget();
  for (let i = 0; i < AT_ONCE; i++) budget.take(0);
  expect([budget.take(300), budget.take(900.5), budget.take(1000), budget.take(1250)]).toEqual([
    700, 100, 0, 750,
  ]);
});

it('waiting requests get a notice of every commit, and other listeners of a stream only some', async () => {
  const { listen, commit, read } = makeWatch();
  const bystander = listen();
  const waiting = listen({ atOnce: true });
  const begin = performance.now();
  await stream(commit, waiting, 40);
  const most = AT_ONCE + 1 + (performance.now() - begin) / PERIOD_MS;
  expect(bystander.times).toBeGreaterThanOrEqual(AT_ONCE);
  expect(bystander.times).toBeLessThanOrEqual(most);
  await expect.poll(() => bystander.length).toBe(read());
});

it('the last of a stream of commits gives a notice, even if none wakes the process meanwhile', async () => {
  const { listen, commit, read } = makeWatch();
  const bystander = listen();
  const begin = performance.now();
  for (let i = 0; i < 60; i++) {
    commit();
    await pause(2);
  }
  await expect.poll(() => bystander.length).toBe(read());
  expect(bystander.times).toBeLessThanOrEqual(AT_ONCE + 1 + (performance.now() - begin) / PERIOD_MS);
});

it('a request that joins the queue during a stream gets a notice of the next commit', async () => {
  const { listen, commit } = makeWatch();
  const bystander = listen();
  // Until there is one whose notice comes later.
  for (let heard = -1; bystander.times !== heard; ) {
    heard = bystander.times;
    commit();
    await pause(20);
  }
  const waiting = listen({ atOnce: true });
  await stream(commit, waiting, 3);
});

it('a stream that only waiting requests hear keeps no timer', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] });
  onTestFinished(() => void vi.useRealTimers());
  const { listen, commit } = makeWatch();
  const waiting = listen({ isQuiet: true, atOnce: true });
  await stream(commit, waiting, AT_ONCE + 2);
  expect(vi.getTimerCount()).toBe(0);
});

it('a listener gets a notice when the path has another folder', async () => {
  const { watch, listen } = makeWatch();
  const listener = listen({ isQuiet: true, atOnce: true });
  watch.restart();
  await expect.poll(() => listener.times).toBe(1);
});

it('a listener that has ended hears nothing, and keeps no timer', async () => {
  // Those of the process would be vitest's too, which come and go.
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] });
  onTestFinished(() => void vi.useRealTimers());
  const { listen, commit } = makeWatch();
  const [ended, other] = [listen(), listen({ isQuiet: true, atOnce: true })];
  expect(vi.getTimerCount()).toBe(1);
  ended.end();
  expect(vi.getTimerCount()).toBe(0);
  await stream(commit, other, 2);
  expect([ended.times, other.times]).toEqual([0, 2]);
});
