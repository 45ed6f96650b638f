// needs: process
// The processes that keep the CPUs of a grant whose children live on.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';
import { openManager } from '../../lib/index.js';
import { makeStateDir } from '../support/state-dir.js';
import { CHILD, end, mortal, ROOT, reportOf } from './children.js';

const HOLDER = fileURLToPath(new URL('holder.mjs', import.meta.url));

interface Holding {
  readonly uid: string;
  readonly cpus: string;
  readonly mask: string;
  readonly pid: number;
}

const ending = (pid: number) => {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended.
  }
};

describe('a process that pinned itself and is killed', () => {
  it('leaves its CPUs to the child that it has forked, until that ends', async () => {
    const stateDir = makeStateDir();
    const manager = await openManager({ stateDir });
    onTestFinished(() => manager.close());
    const holder = mortal(fork(HOLDER, [stateDir, CHILD], { cwd: ROOT }));
    const { uid, cpus, mask, pid } = await reportOf<Holding>(holder);
    onTestFinished(() => ending(pid));
    expect(mask).toBe(cpus);
    await end(holder);
    expect(manager.grants()).toMatchObject([{ uid, alive: true }]);
    expect(readFileSync(`/proc/${pid}/status`, 'utf8')).toContain(`Cpus_allowed_list:\t${cpus}\n`);
    process.kill(pid, 'SIGKILL');
    await expect.poll(() => manager.grants()).toEqual([]);
  });

  it('leaves them to processes that a child has started on the grant, too', async () => {
    const stateDir = makeStateDir();
    const manager = await openManager({ stateDir });
    onTestFinished(() => manager.close());
    const grant = await manager.acquire({ cpu: 1 });
    const program = `import { grant } from 'numalign/preload';
      const child = grant.spawn('sleep', ['60'], { stdio: 'ignore' });
      child.once('spawn', () => process.send(child.pid));
      setInterval(() => {}, 1 << 30);`;
    const child = mortal(
      grant.fork(`data:text/javascript,`, [], {
        cwd: ROOT,
        execArgv: ['--import', 'numalign/preload', '--input-type=module', '-e', program, '--'],
      }),
    );
    const [pid] = (await once(child, 'message')) as [number];
    onTestFinished(() => ending(pid));
    expect(await grant.handOver()).toBe(true);
    await end(child);
    expect(manager.grants()).toMatchObject([{ uid: grant.uid, alive: true }]);
    process.kill(pid, 'SIGKILL');
    await expect.poll(() => manager.grants()).toEqual([]);
  });
});
