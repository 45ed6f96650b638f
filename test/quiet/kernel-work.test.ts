// needs: nothing
import { describe, expect, it } from 'vitest';
import { CpuSet } from '../../lib/machine/cpu-set.js';
import { kernelWork, readKernelSettings } from '../../lib/quiet/kernel-work.js';
import { kernelTree } from '../support/kernel-tree.js';

const SYSTEM = '/sys/devices/system/cpu';
const HUGEPAGES = '/sys/kernel/mm/transparent_hugepage';

// A kernel of 8 CPUs that has been booted to keep CPUs 2-7 quiet.
const QUIET = {
  [`${SYSTEM}/possible`]: '0-7\n',
  [`${SYSTEM}/nohz_full`]: '2-7\n',
  '/proc/cmdline': 'quiet nohz_full=2-7\n',
  [`${HUGEPAGES}/enabled`]: 'always [madvise] never\n',
  [`${HUGEPAGES}/defrag`]: 'always defer defer+madvise [madvise] never\n',
};

const workOn = (cpus: string, files: Record<string, string>) =>
  kernelWork(readKernelSettings(kernelTree(files)), CpuSet.parse(cpus));

const withLine = (line: string) => ({ ...QUIET, [`${SYSTEM}/nohz_full`]: '(null)\n', '/proc/cmdline': line });

const callbacksOn = (cpus: string, line: string) =>
  workOn(cpus, withLine(line)).find(({ found }) => found.startsWith('RCU'))?.found;

describe('the kernel’s work on CPUs', () => {
  it('is none if it was booted and set so', () => {
    expect(workOn('2-7', QUIET)).toEqual([]);
  });

  it('is the tick of the CPUs that have one, with the boot option against it', () => {
    expect(workOn('1-3', { ...QUIET, '/proc/cmdline': 'rcu_nocbs=1' })).toEqual([
      {
        found: "the timer's tick interrupts CPU 1",
        advice: 'boot with `nohz_full=1`, if threads spin there',
      },
    ]);
  });

  it('is the tick of all CPUs without nohz_full=', () => {
    expect(workOn('2-3', withLine('rcu_nocbs=2-3')).map(({ found }) => found)).toEqual([
      "the timer's tick interrupts CPUs 2-3",
    ]);
  });

  it('is the tick of all CPUs in a kernel that cannot do without, and says so', () => {
    const { [`${SYSTEM}/nohz_full`]: _, ...files } = QUIET;
    const [tick, callbacks] = workOn('2', files);
    expect(tick!.advice).toMatch(/^a kernel with CONFIG_NO_HZ_FULL, booted with `nohz_full=2`/);
    expect(callbacks).toEqual({ found: 'RCU callbacks run on CPU 2', advice: 'boot with `rcu_nocbs=2`' });
  });

  it.each([
    ['a list', 'root=/dev/vda rcu_nocbs=2-5 quiet', 'RCU callbacks run on CPUs 6-7'],
    ['a list with a dash in the name', 'rcu-nocbs=2-5', 'RCU callbacks run on CPUs 6-7'],
    ['an option whose name only ends so', 'my.rcu_nocbs=2-7', 'RCU callbacks run on CPUs 2-7'],
    ['the last of two lists', 'rcu_nocbs=0-7 rcu_nocbs=2-6', 'RCU callbacks run on CPU 7'],
    ['all', 'rcu_nocbs=all', undefined],
    ['N for the last CPU', 'rcu_nocbs=3-N', 'RCU callbacks run on CPU 2'],
    ['no CPU at first', 'rcu_nocbs', 'RCU callbacks run on CPUs 2-7'],
    ['no CPU but what is for init', 'quiet -- rcu_nocbs=all', 'RCU callbacks run on CPUs 2-7'],
    ['an unknown kind of list, which reports nothing', 'rcu_nocbs=0-7:1/2', undefined],
  ])('is callbacks of RCU if the command line names %s', (_, line, found) => {
    expect(callbacksOn('2-7', line)).toBe(found);
  });

  it('is khugepaged if transparent hugepages are always on', () => {
    const [work, ...more] = workOn('2', {
      ...QUIET,
      [`${HUGEPAGES}/enabled`]: '[always] madvise never\n',
    });
    expect(more).toEqual([]);
    expect(work!.found).toMatch(/^khugepaged /);
    expect(work!.advice).toBe(`\`echo madvise > ${HUGEPAGES}/enabled\``);
  });

  it('is page faults that wait for compaction, unless there are no hugepages', () => {
    const defrag = { [`${HUGEPAGES}/defrag`]: '[always] defer defer+madvise madvise never\n' };
    expect(workOn('2', { ...QUIET, ...defrag })).toEqual([
      {
        found: 'a page fault waits until memory is compacted',
        advice: `\`echo defer+madvise > ${HUGEPAGES}/defrag\``,
      },
    ]);
    const never = { [`${HUGEPAGES}/enabled`]: 'always madvise [never]\n' };
    expect(workOn('2', { ...QUIET, ...defrag, ...never })).toEqual([]);
  });

  it('is no callback of RCU on the CPUs of a list, of all and up to the last', () => {
    const offloaded = (line: string) => String(readKernelSettings(kernelTree(withLine(line))).offloaded);
    expect(['rcu_nocbs=1-2', 'rcu_nocbs=all', 'rcu_nocbs=6-N'].map(offloaded)).toEqual(['1-2', '0-7', '6-7']);
  });

  it('is unknown as to callbacks of RCU if the command line is hidden', () => {
    const { '/proc/cmdline': _, ...files } = QUIET;
    expect(readKernelSettings(kernelTree(files)).offloaded).toBeUndefined();
  });

  it('is unknown as to callbacks of RCU if the CPUs without a tick are not understood', () => {
    const files = { ...QUIET, [`${SYSTEM}/nohz_full`]: 'some\n' };
    expect(readKernelSettings(kernelTree(files))).toMatchObject({
      tickless: undefined,
      offloaded: undefined,
    });
  });

  it('is unknown if the files are hidden or closed', () => {
    expect(workOn('2', {})).toEqual([]);
    const closed = kernelTree({}, {}, Object.fromEntries(Object.keys(QUIET).map((path) => [path, 'EACCES'])));
    expect(kernelWork(readKernelSettings(closed), CpuSet.parse('2'))).toEqual([]);
  });
});
