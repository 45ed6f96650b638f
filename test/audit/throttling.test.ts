// needs: machine
import { mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { describe, expect, it, onTestFinished } from 'vitest';
import { readCpuStats, throttlingIn } from '../../lib/audit/throttling.js';
import { parseCpuStat } from '../../lib/cgroups/files/cpu-stat.js';
import { findHierarchy, folderOf, pathIn } from '../../lib/cgroups/files/hierarchies.js';

const readThrottling = (pids: number[]) => throttlingIn(readCpuStats(pids));

describe('cpu.stat', () => {
  it('is read in the form of both versions', () => {
    const v1 = 'nr_periods 10\nnr_throttled 3\nthrottled_time 12345\n';
    const v2 = 'usage_usec 9\nnr_periods 10\nnr_throttled 3\nthrottled_usec 12\n';
    expect(parseCpuStat(v1)).toEqual({ nrThrottled: 3, throttledNs: 12_345 });
    expect(parseCpuStat(v2)).toEqual({ nrThrottled: 3, throttledNs: 12_000 });
  });

  it('is null if no quota is accounted', () => {
    const others = ['nr_throttled max\n', 'nr_throttled \n', 'nr_throttled -1\n'];
    for (const text of ['', 'usage_usec 9\nuser_usec 5\n', ...others])
      expect(parseCpuStat(text)).toBeUndefined();
    expect(parseCpuStat('nr_throttled 3\n')).toEqual({ nrThrottled: 3, throttledNs: null });
  });
});

describe('throttling', () => {
  it('of a missing process is unknown', () => {
    expect(readThrottling([2 ** 30])).toEqual(new Map());
  });

  const cpu = findHierarchy('cpu');
  const isOwn = cpu?.version === 1 && process.getuid?.() === 0;
  it.skipIf(!isOwn)('is that of the own cgroup and all above it', () => {
    const above = `${cpu!.mount.point}/numalign-test-${process.pid}`;
    const group = `${above}/inner`;
    const home = folderOf(cpu!, pathIn(cpu!, readFileSync('/proc/self/cgroup', 'utf8'))!)!;
    mkdirSync(above);
    onTestFinished(() => rmdirSync(above));
    mkdirSync(group);
    onTestFinished(() => {
      writeFileSync(`${home}/tasks`, String(process.pid));
      rmdirSync(group);
    });
    writeFileSync(`${group}/tasks`, String(process.pid));
    const files = [...readThrottling([process.pid]).keys()];
    expect(files.slice(0, 2)).toEqual([`${group}/cpu.stat`, `${above}/cpu.stat`]);
    // A quota of a hundredth, on the group above: less than a busy machine leaves to this process.
    writeFileSync(`${above}/cpu.cfs_quota_us`, '1000');
    writeFileSync(`${above}/cpu.cfs_period_us`, '100000');
    let now = readThrottling([process.pid]);
    const isThrottled = () => {
      const { nrThrottled, throttledNs } = now.get(`${above}/cpu.stat`)!;
      return nrThrottled! > 0 && throttledNs! > 0;
    };
    for (const end = Date.now() + 20_000; !isThrottled() && Date.now() < end; )
      now = readThrottling([process.pid]);
    writeFileSync(`${above}/cpu.cfs_quota_us`, '-1');
    expect(now.get(`${group}/cpu.stat`)).toEqual({ nrThrottled: 0, throttledNs: 0 });
    expect(now.get(`${above}/cpu.stat`)!.nrThrottled).toBeGreaterThan(0);
    expect(now.get(`${above}/cpu.stat`)!.throttledNs).toBeGreaterThan(0);
  });
});
