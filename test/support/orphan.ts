// A process that is not a child of this one, so that a search for children does not find it.
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { onTestFinished } from 'vitest';
import type { CpuSet } from '../../lib/machine/cpu-set.js';

export interface Orphan {
  readonly pid: number;
  /** Returns once it has ended. */
  end(): Promise<void>;
}

/** One that takes all of these CPUs that it can get. Ended after the test. */
export function spinningOrphan(cpus: CpuSet): Orphan {
  const start = 'taskset -c "$0" sh -c "while :; do :; done" </dev/null >/dev/null 2>&1 & echo $!';
  const { stdout } = spawnSync('sh', ['-c', start, String(cpus)], { encoding: 'utf8' });
  const pid = Number(stdout);
  const orphan = { pid, end: () => end(pid) };
  onTestFinished(orphan.end);
  return orphan;
}

async function end(pid: number): Promise<void> {
  while (isRunning(pid)) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      return;
    }
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

// Not a zombie.
function isRunning(pid: number): boolean {
  const stat = `/proc/${pid}/stat`;
  return existsSync(stat) && !/\) Z /.test(readFileSync(stat, 'latin1'));
}
