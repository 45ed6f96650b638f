// needs: machine
// How often operations read what the kernel says, as strace counts it: never once for each thread.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { makeStateDir } from '../support/state-dir.js';

const PACKAGE = fileURLToPath(new URL('../../dist/index.js', import.meta.url));

const script = (stateDir: string, workers: number) => `
  import { once } from 'node:events';
  import { Worker } from 'node:worker_threads';
  const { openManager } = await import(${JSON.stringify(PACKAGE)});
  const mark = () => process.kill(process.pid, 'SIGCONT');
  for (let i = 0; i < ${workers}; i++)
    await once(new Worker('setInterval(() => {}, 1e6)', { eval: true }), 'online');
  const manager = await openManager({ stateDir: ${JSON.stringify(stateDir)}, reservedSystemCPUs: '0', cpuManagerReconcilePeriod: 0 });
  const grant = await manager.acquire({ cpu: 1 });
  mark();
  grant.pin();
  mark();
  await grant.release();
  mark();
  process.exit();`;

/** How often a pin and its release open these files, in a process with this many Workers. */
function opened(workers: number) {
  const log = `${makeStateDir()}.strace`;
  const trace = ['-f', '-o', log, '-e', 'trace=openat,kill'];
  const node = [process.execPath, '--input-type=module', '-e', script(makeStateDir(), workers)];
  const { status, stderr } = spawnSync('strace', [...trace, ...node], { encoding: 'utf8' });
  expect([status, stderr]).toEqual([0, '']);
  const phases = readFileSync(log, 'utf8').split(/^\d+ +kill\(\d+, SIGCONT.*$/m);
  expect(phases).toHaveLength(4);
  const count = (text: string) => ({
    tasks: text.match(/"\/proc\/(self|\d+)\/task"/g)?.length ?? 0,
    online: text.match(/"\/sys\/devices\/system\/cpu\/online"/g)?.length ?? 0,
    descriptors: text.match(/"\/proc\/(self|\d+)\/fd"/g)?.length ?? 0,
    locks: text.match(/"\/proc\/locks"/g)?.length ?? 0,
    starts: text.match(/"\d+\/stat"/g)?.length ?? 0,
    delays: text.match(/"\d+\/schedstat"/g)?.length ?? 0,
    names: text.match(/\/comm"/g)?.length ?? 0,
    devices: text.match(/"\/sys\/(bus\/pci|class\/(net|drm)|block)\b/g)?.length ?? 0,
    zones: text.match(/"\/etc\/localtime"/g)?.length ?? 0,
  });
  return { open: count(phases[0]!), pin: count(phases[1]!), release: count(phases[2]!) };
}

it.skipIf(spawnSync('strace', ['-f', 'true']).status !== 0)(
  'a pin and its release read what the kernel says of a process a few times, however many threads it has',
  () => {
    const { open, pin, release } = opened(4);
    expect(open).toMatchObject({ devices: 0, names: 0, zones: 0 });
    // The audit that begins has what the pin has read.
    expect(pin.starts).toBeGreaterThan(8);
    expect(pin).toMatchObject({ starts: pin.delays, names: 0, devices: 0, zones: 0 });
    // Such a process has at least 4 Workers, 4 helpers of V8 and a main thread, and more beside.
    expect(pin.tasks).toBeLessThan(8);
    expect(release.tasks).toBeLessThan(8);
    expect(release.online).toBeLessThan(4);
    expect(pin).toMatchObject({ online: 0, descriptors: 0, locks: 0 });
    expect(release).toMatchObject({ descriptors: 0, locks: 0 });
  },
);
