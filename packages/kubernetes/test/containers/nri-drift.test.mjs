// Containers whose cpuset another program writes.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { ALL, EXCLUSIVE, until, useNodeFixture } from './support/node-fixture.mjs';

describe('A container that another program moves', () => {
  const fixture = useNodeFixture();

  async function isPutBack(pod, cpus) {
    writeFileSync(join(await pod.cpusetFolder(), 'cpuset.cpus'), ALL.cpus);
    await until('it is put back', async () => (await pod.allowed()).cpus === cpus);
  }

  it('is put back, on its own CPUs or in the shared pool, and counted', async () => {
    const { node } = await fixture.startNode();
    const shared = await fixture.pods.runPod('shared');
    const exclusive = await fixture.pods.runPod('exclusive', EXCLUSIVE);
    const { cpus } = await exclusive.seen();
    const pool = (await shared.allowed()).cpus;
    await isPutBack(exclusive, cpus);
    await isPutBack(shared, pool);
    assert.equal(node.repairs, 2);
    assert.equal(fixture.lines.filter((line) => line.includes('another program has put')).length, 2);
  });

  it('is put back while the runtime creates and updates others, which go on', async () => {
    const { node } = await fixture.startNode();
    const exclusive = await fixture.pods.runPod('exclusive', EXCLUSIVE);
    const { cpus } = await exclusive.seen();
    const busy = await fixture.pods.runPod('busy');
    let isOver = false;
    const updates = (async () => {
      for (let shares = 512; !isOver; shares++) await busy.update({ cpu_shares: shares });
    })();
    // A repair that is told over NRI while the runtime calls plugins would stop it for ever.
    for (let i = 0; i < 5; i++) {
      await isPutBack(exclusive, cpus);
      await sleep(1100);
    }
    isOver = true;
    await updates;
    await fixture.pods.runPod('later');
    assert.equal(node.repairs, 5);
    assert.deepEqual(
      fixture.lines.filter((line) => line.includes('was not told')),
      [],
    );
  });

  it('is put back if it was there before the plugin came', async () => {
    const exclusive = await fixture.pods.runPod('early', EXCLUSIVE);
    const { node } = await fixture.startNode();
    // The runtime applies the answer to its first question a moment later.
    const cpus = await until('it has CPUs of its own', async () => {
      const { cpus: now } = await exclusive.allowed();
      return now !== ALL.cpus && now;
    });
    await isPutBack(exclusive, cpus);
    assert.equal(node.repairs, 1);
  });
});
