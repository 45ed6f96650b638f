// Pods of four clients come and go.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { budget } from '../../../../test/support/budget.mjs';
import { CpusetSamples } from './support/cpuset-samples.mjs';
import { ALL, EXCLUSIVE, guaranteed, until, useNodeFixture } from './support/node-fixture.mjs';

const CLIENTS = 4;
const PODS = budget({ all: 500, usual: 24 });
const LONGEST_LIFE_MS = 300;
const SHARED = { resources: { cpu_shares: 512 } };
const IMPOSSIBLE = { resources: guaranteed(64) };
// What a container cannot be started with.
const BROKEN = { ...EXCLUSIVE, mounts: [{ container_path: '/proc/nowhere', host_path: '/' }] };
const KINDS = [EXCLUSIVE, SHARED, EXCLUSIVE, IMPOSSIBLE, EXCLUSIVE, SHARED, BROKEN, SHARED];
const REFUSAL = /requested|free by NUMA node|shared pool/;

describe('Pods of four clients come and go', () => {
  const fixture = useNodeFixture();

  it('no CPU is in two exclusive containers, nor in one and a shared one, and none is lost', async (t) => {
    const { manager, node } = await fixture.startNode();
    const lasting = await fixture.pods.runPod('lasting');
    const samples = new CpusetSamples(manager);
    samples.add(lasting, false);
    await samples.watch(lasting);
    const counts = { placed: 0, refused: 0, broken: 0, shared: 0 };

    async function runOne(i) {
      const kind = KINDS[i % KINDS.length];
      let pod;
      try {
        pod = await fixture.pods.createPod(`pod-${i}`, kind);
      } catch (error) {
        assert.ok(kind !== SHARED && REFUSAL.test(error.message), error.message);
        counts.refused += 1;
        return;
      }
      assert.notEqual(kind, IMPOSSIBLE);
      samples.add(pod, kind === EXCLUSIVE);
      try {
        await pod.start();
        assert.notEqual(kind, BROKEN);
        await samples.watch(pod);
        counts[kind === SHARED ? 'shared' : 'placed'] += 1;
        await sleep(Math.random() * LONGEST_LIFE_MS);
      } catch (error) {
        if (kind !== BROKEN) throw error;
        counts.broken += 1;
      } finally {
        samples.remove(pod);
        await pod.remove();
      }
    }

    let next = 0;
    const client = async () => {
      while (next < PODS) await runOne(next++);
    };
    await Promise.all(Array.from({ length: CLIENTS }, client));
    await samples.end();
    t.diagnostic(
      `${JSON.stringify(counts)}, ${samples.count} looks, ${samples.exclusiveCount} at exclusive CPUs`,
    );
    assert.deepEqual([...samples.flaws], []);
    assert.ok(counts.placed > 0 && counts.shared > 0 && counts.refused > 0 && samples.exclusiveCount > 0);
    await until('all grants are given back', () => manager.grants().length === 0);
    await until('the pool is whole', async () => (await lasting.allowed()).cpus === ALL.cpus);
    assert.deepEqual(
      node.containers.map(({ id }) => id),
      [lasting.containerId],
    );
    // What numalign and the runtime write is not taken for another program's.
    assert.equal(node.repairs, 0, fixture.lines.join('\n'));
    assert.equal(
      fixture.lines.filter((line) => line.startsWith('error: ')).length,
      0,
      fixture.lines.join('\n'),
    );
  });
});
