// Pods of a kubelet that are placed with all their containers, by their manifests.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, it } from 'node:test';
import { guaranteed, until, useNodeFixture } from './support/node-fixture.mjs';

describe('A pod whose manifest is known', () => {
  const fixture = useNodeFixture();

  /** Runs the first of a pod's containers, each with so many CPUs by the manifest. */
  async function runFirst(cpus) {
    const uid = randomUUID();
    const containers = Object.entries(cpus).map(([name, cpu]) => ({
      name,
      resources: { limits: { cpu, memory: '64Mi' } },
    }));
    const findManifest = async () => ({ metadata: { uid }, spec: { containers } });
    const { manager } = await fixture.startNode({ findManifest });
    const [first] = Object.keys(cpus);
    const options = { uid, cgroupParent: `${fixture.runtime.cgroupParent}/kubepods/pod${uid}` };
    const run = () =>
      fixture.pods.runPod('whole', {
        ...options,
        containerName: first,
        resources: guaranteed(cpus[first]),
      });
    return { manager, uid, run };
  }

  it('has one grant for its containers, which start again, until its sandbox ends', async () => {
    const { manager, uid, run } = await runFirst({ app: 1, helper: 0.5 });
    const pod = await run();
    const { cpus, env } = await pod.seen();
    assert.deepEqual(
      manager.grants().map((grant) => [grant.uid, grant.name, `${grant.cpus}`]),
      [[uid, 'numalign:default/whole', cpus]],
    );
    assert.equal(env.NUMALIGN_GRANT, uid);
    const app = pod.containerId;
    await pod.createContainer({ containerName: 'helper', resources: guaranteed(0.5) });
    await pod.start();
    assert.notEqual((await pod.seen()).cpus, cpus);
    await fixture.pods.call('StopContainer', { container_id: app, timeout: 0 });
    await pod.createContainer({ containerName: 'app', resources: guaranteed(1) });
    await pod.start();
    assert.equal((await pod.seen()).cpus, cpus);
    await pod.remove();
    await until('the grant is given back', () => manager.grants().length === 0);
  });

  it('is refused at its first container if not all of them have room', async () => {
    const { manager, run } = await runFirst({ app: 1, large: 64 });
    await assert.rejects(run(), { message: /64 (exclusive CPUs )?requested/ });
    assert.deepEqual(manager.grants(), []);
  });
});
