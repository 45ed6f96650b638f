// Grants that move between NUMA nodes while what runs on them works: at least 4 nodes of 4 CPUs each,
// root, cgroup v2. Run by node --test.
import assert from 'node:assert/strict';
import { after, afterEach, before, describe, it } from 'node:test';
import { budget, isLong } from '../../support/budget.mjs';
import { releaseReally } from '../../support/moves.mjs';
import * as trace from './kernel-trace.mjs';
import * as kernel from './kernel-view.mjs';
import {
  assertAt,
  attached,
  MI,
  MOVABLE,
  memoryFor,
  move,
  newSettings,
  nodes,
  owner,
  ROOM,
  start,
} from './movers.mjs';
import { RecordWatch } from './record-watch.mjs';
import { open } from './state-folders.mjs';

const BYTES = budget({ all: 256, usual: 8 }) * MI;
const TRACED = [...nodes.slice(0, 2), ROOM.node].flatMap(kernel.cpusOfNode);

let watch;
before(() => trace.open(TRACED));
after(() => trace.close(kernel.possible()));
afterEach(async () => {
  trace.pause();
  await watch?.end();
});

// Wakes on any CPU that the kernel chooses, again and again.
const WANDERER = 'while (1) { select(undef, undef, undef, 0.01); for (my $i = 0; $i < 500; $i++) {} }';

/**
 * Tasks that ran on CPUs that others had on record. `owners`: uids by pid; `isBound`: true if a
 * process must keep off CPUs that are not its own.
 */
function intrusions(runs, periods, owners, isBound) {
  const found = new Set();
  for (const { cpu, command, tid, from, to, pid } of runs) {
    // They are in order and many, so that each run is compared only with its own.
    for (let i = firstIndex(periods, (period) => period.to > from); periods[i]?.from < to; i++) {
      const [holder] = Object.entries(periods[i].held).find(([, cpus]) => cpus.includes(cpu)) ?? [];
      const own = owners.get(pid);
      const isRight = own === undefined ? holder === undefined || !isBound(pid) : holder === own;
      if (!isRight)
        found.add(`${command} (${tid}) of process ${pid} on CPU ${cpu} of ${holder ?? 'no grant'}`);
    }
  }
  return [...found];
}

/** The first index of a sorted list for which it holds. */
function firstIndex(list, isSo) {
  let [low, high] = [0, list.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (isSo(list[middle])) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** `moves`: by both grants together; in a long run 100 on each of two machines. */
const LEVELS = [
  { level: 'members', request: { enforcement: 'members' }, moves: budget({ all: 40, usual: 2 }) },
  { level: 'partition', request: {}, moves: budget({ all: 40, usual: 2 }) },
  // The kernel spreads no threads over isolated CPUs.
  {
    level: 'isolated',
    request: { require: 'isolated' },
    pinning: 'placeThreads',
    moves: budget({ all: 20, usual: 2 }),
  },
];
/** One move in this many is of the first grant: with many threads it takes long. */
const PERIOD = budget({ all: 10, usual: 2 });
/** The kernel's trace of one step after the other, of foreign tasks. */
class Recorder {
  #isOfKernel = trace.kernelTasks();
  runs = [];

  async during(step) {
    trace.clear();
    trace.record();
    await step();
    trace.pause();
    assert.equal(trace.lost(TRACED), 0, 'events were lost');
    this.runs.push(...trace.runs().filter(({ command, tid }) => !this.#isOfKernel(command, tid)));
  }
}

/** Statistics of durations, in milliseconds. */
function spread(times) {
  const sorted = times.toSorted((a, b) => a - b);
  const [median, p99, most] = [0.5, 0.99, 1].map((part) => sorted[Math.ceil(part * sorted.length) - 1]);
  return `${sorted.length} moves, median ${Math.round(median)} ms, p99 ${Math.round(p99)} ms, most ${Math.round(most)} ms`;
}

describe('grants that move', () => {
  for (const { level, request: more, pinning, moves } of LEVELS) {
    it(`of the level ${level} take their pages along, and no CPU ever has two owners`, async (t) => {
      const settings = newSettings();
      const manager = await open({ ...settings, sharedMember: true });
      const wanderer = start('perl', '-e', WANDERER);
      await manager.addSharedMember({ pid: wanderer.pid });
      const works = [
        { isOwned: isLong || level !== 'partition', bytes: BYTES, rests: true },
        { isOwned: false, bytes: BYTES, rests: !isLong || level !== 'members' },
      ];
      const movers = [];
      for (const work of works) {
        const request = { ...MOVABLE, memory: memoryFor(work.bytes), ...more };
        const mover = work.isOwned
          ? await owner(settings, request, work, pinning)
          : await attached(manager, request, work);
        movers.push({ ...work, ...mover, gaps: [] });
      }
      assert.deepEqual(
        manager.grants().map(({ enforcement }) => enforcement),
        [level, level],
      );
      const pids = movers.map(({ uid, pid }) => [uid, pid]);
      watch = await new RecordWatch(settings.stateDir, pids).start();
      const recorder = new Recorder();
      let place = ROOM;
      let most = 0;
      for (let i = 0; i < moves; i++) {
        const mover = movers[i % PERIOD === 0 ? 0 : 1];
        const { cpus, memoryNodes } = manager.grant(mover.uid);
        const left = { cpus: String(cpus), node: memoryNodes.first };
        await mover.gap();
        await recorder.during(async () => {
          await move(manager, mover.uid, place);
          await releaseReally(manager, 'asker');
        });
        mover.gaps.push(await mover.gap());
        most = Math.max(most, assertAt(mover, place, left.node));
        // The other one takes the place of this one.
        place = left;
      }
      const { periods, strays } = await watch.stop();
      const known = periods.reduce((sum, { from, to }) => sum + to - from, 0);
      for (const { isOwned, bytes, rests, gaps } of movers)
        t.diagnostic(
          `a grant of ${bytes / MI} MiB ${isOwned ? 'of a process' : 'with an attached process'}, longest gap of a thread that ${rests ? 'wakes all the time' : 'spins'}: ${spread(gaps)}`,
        );
      t.diagnostic(
        `${recorder.runs.length} runs against ${periods.length} periods of the record, of ${Math.round(known / 1e6)} s; at most ${most / 1024} KiB left behind`,
      );
      assert.deepEqual(strays, []);
      const owners = new Map(movers.map(({ uid, pid }) => [pid, uid]));
      const members = [process.pid, wanderer.pid];
      const isBound = (pid) => level !== 'members' || members.includes(pid);
      assert.deepEqual(intrusions(recorder.runs, periods, owners, isBound), []);
      for (const { isOwned, uid } of movers) if (!isOwned) await manager.release(uid);
    });
  }
});
