import { EventEmitter } from 'node:events';
import { mkdirSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Manager } from 'numalign';
import { describe, expect, it, onTestFinished } from 'vitest';
import { soonest } from '../../../../test/support/soonest.js';
import { AttachmentKeeper } from '../../lib/cri/attachment-keeper.js';
import type { ContainerAttachment } from '../../lib/cri/container-attachment.js';
import { temporaryFolder } from './fake-runtime.js';

const PERIOD_MS = 600_000;

/** A keeper of an attachment in a folder; `reconcile` is called at each look. */
async function keep(reconcile: (looks: number) => boolean | Promise<boolean>) {
  const folder = join(temporaryFolder(onTestFinished), 'container');
  mkdirSync(folder);
  const [manager, logged] = [new EventEmitter(), [] as string[]];
  const counts = { looks: 0 };
  const attachment = {
    attached: { cpuset: { folder } },
    reconcile: async () => reconcile(++counts.looks),
  } as unknown as ContainerAttachment;
  const keeper = new AttachmentKeeper({
    ...{ attachment, manager: manager as unknown as Manager, reconcilePeriodMs: PERIOD_MS },
    runtime: { socketPath: join(folder, 'none.sock') },
    log: (level, message) => logged.push(`${level}: ${message}`),
  });
  onTestFinished(() => keeper.close());
  await keeper.start();
  return { keeper, folder, manager, logged, counts };
}

describe('An attachment is looked at', () => {
  it('at the start', async () => {
    expect((await keep(() => true)).counts.looks).toBe(1);
  });

  it.each(['cpuset.cpus', 'cpuset.mems'])('if another program writes %s', async (file) => {
    const { folder, counts } = await keep(() => true);
    writeFileSync(join(folder, file), '0');
    await expect.poll(() => counts.looks).toBeGreaterThan(1);
  });

  it('if its folder is removed', async () => {
    const { folder, counts } = await keep(() => true);
    rmdirSync(folder);
    await expect.poll(() => counts.looks).toBeGreaterThan(1);
  });

  it('if grants change', async () => {
    const { manager, counts } = await keep(() => true);
    manager.emit('change');
    await expect.poll(() => counts.looks).toBe(2);
  });

  it('again if a check has failed, which is reported', async () => {
    const { manager, counts, logged } = await keep((looks) => {
      if (looks === 2) throw new Error('no runtime');
      return true;
    });
    manager.emit('change');
    await expect.poll(() => counts.looks).toBe(3);
    expect(logged).toEqual(["error: the container's cpuset could not be compared: no runtime"]);
  });

  it('less and less often if each check is followed by another write', async () => {
    const { folder, counts } = await keep(() => true);
    const end = Date.now() + 1500;
    while (Date.now() < end) {
      writeFileSync(join(folder, 'cpuset.cpus'), `${counts.looks}`);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    // 20 ms, 40, 80, …: seven pauses make more than two seconds.
    expect(counts.looks).toBeLessThan(9);
  });

  it('at once if grants change, even if another program writes all the time', async () => {
    const late = await soonest(640, async () => {
      const { folder, manager, counts } = await keep(() => true);
      const writes = setInterval(() => writeFileSync(join(folder, 'cpuset.cpus'), '0'), 5);
      await expect.poll(() => counts.looks, { interval: 5 }).toBeGreaterThan(6);
      const [before, began] = [counts.looks, performance.now()];
      manager.emit('change');
      await expect.poll(() => counts.looks, { interval: 5 }).toBeGreaterThan(before);
      clearInterval(writes);
      return performance.now() - began;
    });
    expect(late).toBeLessThan(640);
  });

  it('no longer once the container has ended', async () => {
    const { keeper, folder, manager, counts } = await keep((looks) => looks < 2);
    writeFileSync(join(folder, 'cpuset.cpus'), '0');
    await keeper.ended;
    expect(manager.listenerCount('change')).toBe(0);
    await keeper.close();
    expect(counts.looks).toBe(2);
  });

  it('to the end if it is closed meanwhile', async () => {
    let finish = () => {};
    const { keeper, manager, counts } = await keep(async (looks) => {
      if (looks === 2)
        await new Promise<void>((resolve) => {
          finish = resolve;
        });
      return true;
    });
    manager.emit('change');
    await expect.poll(() => counts.looks).toBe(2);
    let isClosed = false;
    const close = keeper.close().then(() => {
      isClosed = true;
    });
    await keeper.ended;
    expect(isClosed).toBe(false);
    finish();
    await close;
  });
});
