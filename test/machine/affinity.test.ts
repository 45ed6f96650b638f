// needs: machine
import { readdirSync, readFileSync } from 'node:fs';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { affinity, threadId, threads } from '../../lib/entries/diagnostics.js';
import { discover } from '../../lib/entries/topology.js';
import { CpuSet, type NumalignError, pin, pinThread } from '../../lib/index.js';

const ALL = affinity();
const kernelsWord = (tid: number) =>
  /^Cpus_allowed_list:\s*(.*)$/m.exec(readFileSync(`/proc/self/task/${tid}/status`, 'utf8'))![1];
const errorOf = (action: () => unknown): NumalignError => {
  try {
    action();
  } catch (error) {
    return error as NumalignError;
  }
  throw new Error('no error came');
};

beforeEach(() => onTestFinished(() => void pin(ALL)));

describe('pinning a thread', () => {
  it('moves only the calling thread, and reads the mask back from the kernel', () => {
    const cpu = CpuSet.of(ALL.first!);
    const result = pinThread(cpu);
    expect(result).toMatchObject({ unmovable: [], guaranteed: true });
    expect(result.moved.map(({ tid, cpus, before }) => [tid, String(cpus), String(before)])).toEqual([
      [process.pid, String(cpu), String(ALL)],
    ]);
    expect(kernelsWord(process.pid)).toBe(String(cpu));
    expect(affinity().equals(cpu)).toBe(true);
    const others = threads().filter(({ tid }) => tid !== process.pid);
    expect(others.length).toBeGreaterThan(0);
    for (const other of others) expect(other.cpus.equals(ALL)).toBe(true);
  });

  it('moves another thread by its id', () => {
    const other = threads().find(({ tid }) => tid !== process.pid)!;
    pinThread(String(ALL.first), other.tid);
    expect(kernelsWord(other.tid)).toBe(String(ALL.first));
    expect(affinity(other.tid).toString()).toBe(String(ALL.first));
    expect(affinity().equals(ALL)).toBe(true);
  });

  it('reports a mask that the kernel has clipped', async () => {
    const { possible } = await discover();
    const beyond = CpuSet.of(possible.toArray().at(-1)! + 1);
    const result = pinThread(CpuSet.of(ALL.first!).union(beyond));
    expect(result.moved).toEqual([]);
    expect(result.guaranteed).toBe(false);
    expect(result.unmovable.map(({ reason, cpus }) => [reason, String(cpus)])).toEqual([
      ['clipped', String(ALL.first)],
    ]);
  });

  it('reports a missing CPU, and lists the existing ones', () => {
    const error = errorOf(() => pin('16383'));
    expect(error).toMatchObject({ code: 'ERR_SYSCALL', errnoName: 'EINVAL', details: { value: '16383' } });
    expect(error.message).toMatch(/^this machine has no CPU 16383 online; it has CPUs? [\d,-]+$/);
    expect(CpuSet.parse(String(error.details.valid)).intersects(ALL)).toBe(true);
  });

  it('reports the refusals of the kernel with errno and system call', () => {
    const nowhere = errorOf(() => pinThread('16383'));
    expect(nowhere).toMatchObject({
      code: 'ERR_SYSCALL',
      errnoName: 'EINVAL',
      errno: 22,
      syscall: 'sched_setaffinity',
    });
    expect(nowhere.message).toContain('16383');
    const missing = 2 ** 22 - 1;
    expect(errorOf(() => pinThread('0', missing))).toMatchObject({ code: 'ERR_SYSCALL', errnoName: 'ESRCH' });
    expect(errorOf(() => affinity(missing))).toMatchObject({
      code: 'ERR_SYSCALL',
      errnoName: 'ESRCH',
      syscall: 'sched_getaffinity',
    });
    expect(affinity().equals(ALL)).toBe(true);
  });

  it('moves no thread of another process', () => {
    expect(errorOf(() => pinThread('0', process.ppid))).toMatchObject({
      code: 'ERR_SYSCALL',
      errnoName: 'ESRCH',
    });
    expect(errorOf(() => affinity('process' as unknown as number)).code).toBe('ERR_INVALID_OPTION');
  });

  it('refuses invalid arguments, and changes nothing', () => {
    expect(errorOf(() => pin('')).code).toBe('ERR_INVALID_ARGUMENT');
    expect(errorOf(() => pin('1-')).code).toBe('ERR_INVALID_LIST');
    expect(errorOf(() => pin('0', { threads: 'all' as 'process' })).code).toBe('ERR_INVALID_OPTION');
    expect(errorOf(() => pin('0', { threads: -5 })).code).toBe('ERR_INVALID_OPTION');
    expect(errorOf(() => pin('0', { thread: 'current' } as object))).toMatchObject({
      code: 'ERR_INVALID_OPTION',
      message: expect.stringContaining('did you mean "threads"'),
    });
    expect(affinity().equals(ALL)).toBe(true);
  });
});

describe('pinning the process', () => {
  it('moves every thread, and says if one may be missed', () => {
    const result = pin(String(ALL.first));
    expect(result.guaranteed).toBe(false);
    expect(result.unmovable).toEqual([]);
    const tids = readdirSync('/proc/self/task');
    expect(result.moved.length).toBeGreaterThanOrEqual(tids.length);
    for (const tid of tids) expect(kernelsWord(Number(tid))).toBe(String(ALL.first));
  });
});

describe('threads', () => {
  it('lists every thread of the process, and knows the main thread and the pool threads that worked for it', async () => {
    await discover();
    const list = threads();
    expect(list.map(({ tid }) => String(tid)).sort()).toEqual(readdirSync('/proc/self/task').sort());
    expect(threadId()).toBe(process.pid);
    expect(list.filter(({ role }) => role === 'main').map(({ tid }) => tid)).toEqual([process.pid]);
    expect(list.some(({ role }) => role === 'pool')).toBe(true);
  });
});
