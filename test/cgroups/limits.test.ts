// needs: machine
// The limits of cgroups on CPU time and memory, read from folders that look as the kernel's do.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { limitsOf } from '../../lib/cgroups/limits.js';

type Files = Readonly<Record<string, string>>;

/** Folders one in the other, the outermost first; what a process in the innermost is limited to. */
function limitsIn(...levels: Files[]) {
  const point = mkdtempSync(join(tmpdir(), 'numalign-test-limits-'));
  onTestFinished(() => rmSync(point, { recursive: true }));
  const folders = [point];
  for (const [i, files] of levels.entries()) {
    if (i > 0) folders.unshift(join(folders[0]!, `level${i}`));
    const [folder] = folders as [string];
    mkdirSync(folder, { recursive: true });
    for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), `${text}\n`);
  }
  const { cpuMax, memoryMax } = limitsOf(folders, folders);
  return { cpus: cpuMax?.cpus ?? null, cpuMax, bytes: memoryMax?.bytes ?? null };
}

describe('the limit that counts', () => {
  it('is the tightest, wherever above the process it is', () => {
    const loose = { 'cpu.max': '400000 100000', 'memory.max': '4000' };
    const tight = { 'cpu.max': '150000 100000', 'memory.max': '1000' };
    const middle = { 'cpu.max': '200000 100000', 'memory.max': '2000' };
    for (const order of [
      [loose, middle, tight],
      [tight, middle, loose],
      [loose, tight, middle],
      [middle, tight, loose],
    ]) {
      expect(limitsIn(...order)).toMatchObject({ cpus: 1.5, bytes: 1000 });
    }
  });

  it('is that of quota and period together', () => {
    expect(limitsIn({ 'cpu.max': '50000 10000' }, { 'cpu.max': '60000 100000' })).toMatchObject({
      cpuMax: { cpus: 0.6, quotaUs: 60_000, periodUs: 100_000 },
    });
  });

  it('is none where no cgroup has one, as cgroup v2 and as v1 say it', () => {
    const none = { cpus: null, bytes: null };
    expect(limitsIn({})).toMatchObject(none);
    expect(limitsIn({ 'cpu.max': 'max 100000', 'memory.max': 'max' })).toMatchObject(none);
    const v1 = {
      'cpu.cfs_quota_us': '-1',
      'cpu.cfs_period_us': '100000',
      'memory.limit_in_bytes': '9223372036854771712',
    };
    expect(limitsIn(v1)).toMatchObject(none);
  });

  it('is read from cgroup v1 too', () => {
    const v1 = { 'cpu.cfs_quota_us': '30000', 'cpu.cfs_period_us': '10000', 'memory.limit_in_bytes': '77' };
    expect(limitsIn(v1, {})).toMatchObject({ cpus: 3, bytes: 77 });
  });

  it('of no memory at all is a limit', () => {
    expect(limitsIn({ 'memory.max': '5' }, { 'memory.max': '0' })).toMatchObject({ bytes: 0 });
  });

  it('comes with how often that cgroup ran into it', () => {
    const stat = 'usage_usec 5\nnr_periods 9\nnr_throttled 3\nthrottled_usec 42';
    const { cpuMax } = limitsIn({ 'cpu.max': '1000 1000' }, { 'cpu.max': '100 1000', 'cpu.stat': stat });
    expect(cpuMax!.throttled).toEqual({ nrThrottled: 3, throttledUs: 42 });
    expect(limitsIn({ 'cpu.max': '1000 1000' }).cpuMax!.throttled).toBe(null);
  });
});
