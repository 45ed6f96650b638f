// needs: process
// Requests that wait for CPUs, in order of arrival.
import { execFileSync } from 'node:child_process';
import { setMaxListeners } from 'node:events';
import { mkdirSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import fc from 'fast-check';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { native } from '../../lib/base/native.js';
import type { NativeFolder } from '../../lib/base/native-files.js';
import type { Listener } from '../../lib/state/files/folder-watch.js';
import { inTurn } from '../../lib/state/turns.js';
import { FolderQueue, type WaitQueue, waitersIn } from '../../lib/state/wait-queue.js';
import { errorOf } from '../support/error-of.js';
import { makeStateDir } from '../support/state-dir.js';

const openFolder = (path: string) => native.Folder.open(path, false, 0o700, -1);
const nameOf = (number: number) => String(number).padStart(16, '0');

function queues() {
  const path = makeStateDir();
  mkdirSync(path);
  const open = (folder = openFolder(path)) => new FolderQueue(folder, path);
  return { path, open, one: open(), other: open() };
}

describe('a queue', () => {
  it('has the same order for all', () => {
    const { path, one, other } = queues();
    expect(one.isFirst(undefined)).toBe(true);
    const first = one.join();
    expect(other.isFirst(undefined)).toBe(false);
    const second = other.join();
    const third = one.join();
    expect([one.isFirst(first), other.isFirst(second), one.isFirst(third)]).toEqual([true, false, false]);
    expect([one.isFirst(undefined), other.isFirst(undefined)]).toEqual([false, false]);
    one.leave(first);
    expect([other.isFirst(second), one.isFirst(third)]).toEqual([true, false]);
    other.leave(second);
    expect(one.isFirst(third)).toBe(true);
    one.leave(third);
    expect(readdirSync(path)).toEqual([]);
  });

  it('gives no place that a request before the last has left', () => {
    const { one, other } = queues();
    const [first, second, third, last] = [one.join(), other.join(), one.join(), other.join()];
    one.leave(third);
    expect(one.join().number).toBe(last.number + 1);
    expect([first, second, last].map(({ number }) => number)).toEqual([1, 2, 4]);
  });

  it('lets a request from before its folder was replaced wait only for those of other processes there', () => {
    const { path, open } = queues();
    const folder = openFolder(path);
    const queue = open(folder);
    const [first, second] = [queue.join(), queue.join()];
    rmSync(path, { recursive: true });
    mkdirSync(path);
    const there = openFolder(path);
    folder.become(there);
    const foreign = open(there);
    const [third, before, fourth] = [queue.join(), foreign.join(), queue.join()];
    expect([third, before, fourth].map(({ number }) => number)).toEqual([1, 2, 3]);
    queue.leave(first);
    expect(queue.isFirst(second)).toBe(true);
    queue.leave(second);
    expect(queue.isFirst(third)).toBe(true);
    queue.leave(third);
    expect([queue.isFirst(fourth), foreign.isFirst(before)]).toEqual([false, true]);
    foreign.leave(before);
    expect(queue.isFirst(fourth)).toBe(true);
  });

  it('has no place for files that no request holds, and for foreign files', () => {
    const { path, one } = queues();
    for (const name of [nameOf(1), nameOf(7), 'README', '17']) writeFileSync(join(path, name), '');
    expect(one.isFirst(undefined)).toBe(true);
    const ticket = one.join();
    expect(one.isFirst(ticket)).toBe(true);
    one.leave(ticket);
    expect(readdirSync(path).sort()).toEqual(['17', 'README']);
  });

  it('takes a folder, a pipe or a link with the name of a place for none', () => {
    const { path, one } = queues();
    mkdirSync(join(path, nameOf(1)));
    symlinkSync('/dev/null', join(path, nameOf(2)));
    execFileSync('mkfifo', [join(path, nameOf(3))]);
    mkdirSync(join(path, nameOf(4)));
    expect(one.isFirst(undefined)).toBe(true);
    const ticket = one.join();
    expect(one.isFirst(ticket)).toBe(true);
    one.leave(ticket);
  });

  it('keeps its order beside a folder with the name of the last place of all', () => {
    const { path, one, other } = queues();
    mkdirSync(join(path, `0${'9'.repeat(15)}`));
    const first = one.join();
    const second = other.join();
    expect([one.isFirst(first), other.isFirst(second)]).toEqual([true, false]);
    one.leave(first);
    expect(other.isFirst(second)).toBe(true);
    other.leave(second);
  });

  it('is left without harm to another request that has the same place in a new folder', () => {
    const { path, open } = queues();
    const folder = openFolder(path);
    const old = open(folder);
    const lost = old.join();
    rmSync(path, { recursive: true });
    mkdirSync(path);
    const next = openFolder(path);
    const present = open(next).join();
    expect(present).toEqual(lost);
    folder.become(next);
    old.leave(lost);
    expect(readdirSync(path)).toEqual([nameOf(1)]);
  });
});

it('the waiting processes of a folder are listed in order of arrival, without places that no one holds', () => {
  const { path, one } = queues();
  const folder = openFolder(path);
  const files = [9, 3, 7, 1, 12].map((number) =>
    folder.createOwner(nameOf(number), `${number} program\nx\n`),
  );
  files.push(folder.createOwner(nameOf(20), 'nameless'));
  for (const name of [nameOf(2), 'README', '17']) writeFileSync(join(path, name), '2 program\n');
  const ticket = one.join();
  const [last, ...others] = waitersIn(folder).reverse();
  expect(others.reverse()).toEqual([
    ...[1, 3, 7, 9, 12].map((pid) => ({ pid, command: 'program' })),
    { pid: null, command: 'nameless' },
  ]);
  expect(last!.pid).toBe(process.pid);
  one.leave(ticket);
  for (const file of files) file.close();
  expect(waitersIn(folder)).toEqual([]);
});

// Processes whose requests wait until `serve` lets one have what it wants.
function crowd(count: number, watched: (folder: NativeFolder) => NativeFolder = (folder) => folder) {
  const { path, open } = queues();
  const listeners = new Set<Listener>();
  const watch = (listener: Listener) => {
    listeners.add(listener);
    return () => void listeners.delete(listener);
  };
  const stores = Array.from({ length: count }, () => {
    const waiters: WaitQueue = open(watched(openFolder(path)));
    return { waiters, watch, use: () => () => {} };
  });
  const served: number[] = [];
  let free = 0;
  const looks = { attempts: 0 };
  const request = (number: number, store: number, signal?: AbortSignal) =>
    inTurn(stores[store % count]!, signal, async (turn) => {
      looks.attempts++;
      if (free > 0 && turn.isOurs()) {
        free--;
        served.push(number);
        return number;
      }
      turn.wait();
      return undefined;
    });
  const serve = async () => {
    const before = served.length;
    free = 1;
    for (const listener of [...listeners]) listener();
    while (served.length === before) await turn();
  };
  return { path, request, serve, served, looks };
}

describe('waiting requests', () => {
  it('of several processes get their turn in order of arrival, whichever give up', async () => {
    const waiter = fc.record({ store: fc.nat(3), givesUpAfter: fc.option(fc.nat(6), { nil: undefined }) });
    await fc.assert(
      fc.asyncProperty(fc.array(waiter, { minLength: 1, maxLength: 10 }), async (waiters) => {
        const { path, request, serve, served } = crowd(4);
        const aborts = waiters.map(() => new AbortController());
        const ends = waiters.map(({ store }, i) =>
          request(i, store, aborts[i]!.signal).catch(({ message }) => message),
        );
        while (readdirSync(path).length < waiters.length) await turn();
        for (let step = 0; ; step++) {
          waiters.forEach(({ givesUpAfter }, i) => {
            if (givesUpAfter === step && !served.includes(i)) aborts[i]!.abort(new Error('enough'));
          });
          const isLeft = (_: unknown, i: number) => !served.includes(i) && !aborts[i]!.signal.aborted;
          if (!waiters.some(isLeft)) break;
          const next = waiters.findIndex(isLeft);
          await serve();
          expect(served.at(-1)).toBe(next);
        }
        expect(await Promise.all(ends)).toEqual(waiters.map((_, i) => (served.includes(i) ? i : 'enough')));
        expect(readdirSync(path)).toEqual([]);
      }),
      { numRuns: 20 },
    );
  });

  it('cost each other a number of looks that does not grow with the queue', async () => {
    const perRequest = async (requests: number) => {
      let calls = 0;
      const counted = (folder: NativeFolder) => {
        for (const name of ['list', 'isOwnerAlive', 'read', 'createOwner', 'remove'] as const) {
          const call = (folder[name] as (...parameters: never[]) => unknown).bind(folder);
          Object.defineProperty(folder, name, {
            value: (...parameters: never[]) => {
              calls++;
              return call(...parameters);
            },
          });
        }
        return folder;
      };
      const { path, request, serve, looks } = crowd(5, counted);
      const all = Array.from({ length: requests }, (_, i) => request(i, i));
      while (readdirSync(path).length < requests) await turn();
      for (let i = 0; i < requests; i++) await serve();
      await Promise.all(all);
      return { calls: calls / requests, attempts: looks.attempts / requests };
    };
    const [few, many] = [await perRequest(20), await perRequest(200)];
    expect(many.calls).toBeLessThan(few.calls + 3);
    expect(many.attempts).toBeLessThan(few.attempts + 1);
  });

  it('have one timer a process', async () => {
    // Those of this process would be vitest's too, which come and go.
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] });
    onTestFinished(() => void vi.useRealTimers());
    const { path, request } = crowd(3);
    const abort = new AbortController();
    setMaxListeners(30, abort.signal);
    const all = Array.from({ length: 30 }, (_, i) => errorOf(() => request(i, i, abort.signal)));
    while (readdirSync(path).length < 30) await turn();
    await turn();
    expect(vi.getTimerCount()).toBe(3);
    abort.abort(new Error('enough'));
    await Promise.all(all);
  });
});
