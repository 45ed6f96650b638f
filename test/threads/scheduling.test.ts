// needs: machine
// SCHED_FIFO and nice: set, read back, refused, undone.
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { getPriority } from 'node:os';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';
import { scheduling, threadId, threads } from '../../lib/entries/diagnostics.js';
import { type Grant, openManager, pinThread } from '../../lib/index.js';
import { thrownBy } from '../support/error-of.js';
import { canNice } from '../support/rights.js';
import { makeStateDir } from '../support/state-dir.js';
import { ALL } from './everything.js';

const SCHEDULING_PROGRAM = fileURLToPath(new URL('scheduling-program.mjs', import.meta.url));
const isRoot = process.getuid?.() === 0;
// A control group may have no budget for real-time threads.
const canBeFifo = isRoot && spawnSync('chrt', ['-f', '1', 'true']).status === 0;

// Of /proc/<pid>/task/<tid>/stat: rt_priority is field 40, policy 41.
function kernelsWord(tid: number): [policy: number, priority: number] {
  const stat = readFileSync(`/proc/self/task/${tid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return [Number(fields[41 - 3]), Number(fields[40 - 3])];
}
const [OTHER, FIFO] = [0, 1];

async function pinned(): Promise<Grant> {
  const manager = await openManager({ stateDir: makeStateDir() });
  const grant = await manager.acquire({ cpu: 1 });
  onTestFinished(async () => {
    await grant.release();
    manager.close();
    expect(kernelsWord(threadId())).toEqual([OTHER, 0]);
  });
  grant.pin({ threads: 'current' });
  return grant;
}

// The tests may be run with a niceness.
const { tid: _tid, ...ORDINARY } = scheduling();

describe.runIf(canBeFifo && ALL.size > 1)('SCHED_FIFO', () => {
  it('is given, read back, and undone with the pin', async () => {
    const grant = await pinned();
    const given = grant.schedule({ policy: 'fifo', priority: 5 });
    expect(given).toEqual({ tid: threadId(), policy: 'fifo', priority: 5, nice: 0, resetOnFork: true });
    expect(kernelsWord(threadId())).toEqual([FIFO, 5]);
    expect(scheduling()).toEqual(given);
    expect(grant.schedule({ policy: 'fifo', priority: 6 }).priority).toBe(6);
    await grant.unpin();
    expect(scheduling()).toMatchObject(ORDINARY);
  });

  it('is undone by release, and by hand', async () => {
    const grant = await pinned();
    grant.schedule({ policy: 'fifo', priority: 5 });
    expect(grant.schedule({})).toMatchObject(ORDINARY);
    grant.schedule({ policy: 'fifo', priority: 5 });
    await grant.release();
    expect(scheduling()).toMatchObject(ORDINARY);
  });

  it('is not inherited by processes', async () => {
    const grant = await pinned();
    grant.schedule({ policy: 'fifo', priority: 5 });
    expect(spawnSync('chrt', ['-p', '0'], { encoding: 'utf8' }).stdout).toContain('SCHED_OTHER');
    const child = grant.spawn('sh', ['-c', 'chrt -p $$']);
    const chunks: Buffer[] = [];
    child.stdout!.on('data', (chunk) => chunks.push(chunk));
    await once(child, 'close');
    expect(String(Buffer.concat(chunks))).toContain('SCHED_OTHER');
    expect(scheduling().policy).toBe('fifo');
  });

  it('is refused if V8’s helpers, or others, would have nowhere else to run', async () => {
    const grant = await pinned();
    grant.pin();
    const error = thrownBy(() => grant.schedule({ policy: 'fifo', priority: 5 }))!;
    expect(error).toMatchObject({ code: 'ERR_SCHEDULING', details: { cpus: String(grant.cpus) } });
    expect(threads().map(({ tid }) => tid)).toContain(error.details.tid);
    expect(kernelsWord(threadId())).toEqual([OTHER, 0]);
  });

  it('is taken back if others move to its CPUs, so that they do not starve', async () => {
    const grant = await pinned();
    grant.schedule({ policy: 'fifo', priority: 5 });
    grant.pin();
    expect(scheduling()).toMatchObject(ORDINARY);
  });

  it('refuses the start of a Worker that would starve', async () => {
    const grant = await pinned();
    grant.schedule({ policy: 'fifo', priority: 5 });
    const error = thrownBy(() => grant.worker('0', { eval: true }));
    expect(error).toMatchObject({ code: 'ERR_SCHEDULING', details: { value: String(grant.cpus) } });
  });

  it('is for threads on the grant’s CPUs only, also of others than the calling one', async () => {
    const grant = await pinned();
    const other = threads().find(({ role }) => role === 'pool')!.tid;
    const outside = thrownBy(() => grant.schedule({ policy: 'fifo', priority: 5, threads: other }));
    expect(outside).toMatchObject({
      code: 'ERR_SCHEDULING',
      details: { tid: other, valid: String(grant.cpus) },
    });
    grant.pin({ threads: other });
    pinThread(ALL);
    expect(grant.schedule({ policy: 'fifo', priority: 5, threads: other })).toMatchObject({
      tid: other,
      policy: 'fifo',
    });
    expect(kernelsWord(other)).toEqual([FIFO, 5]);
    await grant.release();
    expect(kernelsWord(other)).toEqual([OTHER, 0]);
  });
});

describe('nice', () => {
  it('is given, read back, and undone', async () => {
    const grant = await pinned();
    expect(grant.schedule({ nice: 5 })).toMatchObject({ policy: 'other', nice: 5 });
    expect(getPriority()).toBe(5);
    if (!canNice) return; // it cannot go back without rights
    expect(grant.schedule({ nice: -7 })).toMatchObject({ nice: -7, resetOnFork: true });
    expect(getPriority()).toBe(-7);
    await grant.release();
    expect(scheduling()).toMatchObject(ORDINARY);
  });

  it('stays on the thread: a Worker starts with 0 where it is less', async () => {
    if (!canNice) return;
    const grant = await pinned();
    grant.schedule({ nice: -7 });
    const worker = grant.worker(
      `require('node:worker_threads').parentPort.postMessage(require('node:os').getPriority(Number(require('node:fs').readlinkSync('/proc/thread-self').split('/').at(-1))))`,
      { eval: true },
    );
    expect((await once(worker, 'message'))[0]).toBe(0);
    await worker.terminate();
  });
});

describe('schedule', () => {
  it('refuses invalid values, and changes nothing', async () => {
    const grant = await pinned();
    for (const [options, option] of [
      [{ policy: 'rr' }, 'policy'],
      [{ policy: 'fifo' }, 'priority'],
      [{ policy: 'fifo', priority: 0 }, 'priority'],
      [{ policy: 'fifo', priority: 100 }, 'priority'],
      [{ policy: 'fifo', priority: 5, nice: 1 }, 'nice'],
      [{ priority: 5 }, 'priority'],
      [{ nice: -21 }, 'nice'],
      [{ nice: 1.5 }, 'nice'],
      [{ nice: 1, threads: 'process' }, 'threads'],
    ] as const) {
      const error = thrownBy(() => grant.schedule(options as object));
      expect(error).toMatchObject({ code: 'ERR_INVALID_OPTION', details: { option } });
    }
    expect(thrownBy(() => grant.schedule({ nize: 3 } as object))).toMatchObject({
      code: 'ERR_INVALID_OPTION',
    });
    expect(thrownBy(() => grant.schedule({ threads: 2 ** 22 - 1 }))).toMatchObject({ errnoName: 'ESRCH' });
    expect(thrownBy(() => scheduling(2 ** 22 - 1))).toMatchObject({
      errnoName: 'ESRCH',
      syscall: 'sched_getattr',
    });
  });

  it.runIf(isRoot && ALL.size > 1)(
    'obeys the limits without CAP_SYS_NICE, and says which one is too low',
    () => {
      // RLIMIT_NICE 22 allows -2. Where limits cannot be raised, they are what they are: none of it
      // is allowed.
      const raise = ['prlimit', '--rtprio=5:5', '--nice=22:22'];
      const canRaise = spawnSync('prlimit', [...raise.slice(1), 'true']).status === 0;
      const [command, ...args] = [
        ...(canRaise ? raise : ['prlimit', '--rtprio=0:0', '--nice=0:0']),
        ...[
          'nice',
          '-n',
          String(-getPriority()),
          'setpriv',
          '--bounding-set=-sys_nice',
          '--inh-caps=-sys_nice',
          process.execPath,
          SCHEDULING_PROGRAM,
        ],
      ];
      const attempts = [
        { policy: 'fifo', priority: 6 },
        { policy: 'fifo', priority: 5 },
        { nice: -3 },
        { nice: -2 },
        { nice: 4 },
      ];
      const options = JSON.stringify({ stateDir: makeStateDir(), attempts });
      const { stdout, stderr } = spawnSync(command!, [...args, options], { encoding: 'utf8' });
      expect(stderr).toBe('');
      const { answers, after } = JSON.parse(stdout);
      const [tooHigh, fifo, tooNice, nice, nicer] = answers;
      expect(tooHigh).toMatchObject({
        code: 'ERR_SCHEDULING',
        limit: canRaise ? 5 : 0,
        valid: canRaise ? '1 to 5' : 'none',
      });
      expect(tooHigh.message).toContain('RLIMIT_RTPRIO');
      expect(fifo).toMatchObject(canRaise ? { policy: 'fifo', priority: 5 } : { code: 'ERR_SCHEDULING' });
      expect(tooNice).toMatchObject({ code: 'ERR_SCHEDULING', limit: canRaise ? 22 : 0 });
      expect(tooNice.message).toContain('RLIMIT_NICE');
      expect(nice).toMatchObject(canRaise ? { policy: 'other', nice: -2 } : { code: 'ERR_SCHEDULING' });
      expect(nicer).toMatchObject({ policy: 'other', nice: 4 });
      // What needs rights to be taken back stays: a flag that does nothing to an ordinary thread,
      // and a greater nice value.
      expect(after).toMatchObject({ policy: 'other', nice: canRaise ? 0 : 4 });
    },
  );
});
