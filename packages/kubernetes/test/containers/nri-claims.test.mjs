// Containers with ResourceClaims: the runtime reads CDI files, and asks numalign over NRI.
import assert from 'node:assert/strict';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { CpuSet } from 'numalign';
import { ALL, allCpusBut, EXCLUSIVE, until, useNodeFixture } from './support/node-fixture.mjs';
import { allocatedClaim, cdiAnnotation } from './support/played-plugin.mjs';

describe('Containers have ResourceClaims on a node that runs numalign-node --dra', () => {
  const fixture = useNodeFixture();
  const cdiFiles = () => {
    const folder = join(fixture.runtime.folder, 'cdi');
    return existsSync(folder) ? readdirSync(folder) : [];
  };

  /** A node with one claim of a pod. */
  async function withClaim(podUid, capacity = { cpu: '1', memory: '64Mi' }) {
    const claim = allocatedClaim('claim', podUid, capacity);
    const started = await fixture.startDriver(new Map([['claim', claim]]));
    return { claim, ...started };
  }

  const onOne = (devices, more) => ({ containerAnnotations: cdiAnnotation(devices), ...more });

  it('has the CPUs and memory of its claim from its first instruction until it is unprepared', async () => {
    const { claim, plugin, manager } = await withClaim('pod-uid');
    const shared = await fixture.pods.runPod('shared');
    const devices = await plugin.prepare(claim);
    const [grant] = manager.grants();
    const pod = await fixture.pods.createPod('pod', onOne(devices, { uid: 'pod-uid' }));
    assert.equal((await shared.allowed()).cpus, allCpusBut(`${grant.cpus}`));
    await pod.start();
    const { cpus, mems, env } = await pod.seen();
    assert.deepEqual([cpus, mems], [`${grant.cpus}`, ALL.mems]);
    assert.equal(env.NUMALIGN_CPUS, cpus);
    assert.equal(env.NUMALIGN_GRANT, 'claim.claim-uid.0');
    assert.equal(grant.memory[0].bytes, 64 * 2 ** 20);
    await assert.rejects(plugin.unprepare(claim), /ERR_CLAIM_IN_USE: numalign:default\/pod\/main still runs/);
    await pod.remove();
    assert.equal(manager.grants().length, 1);
    await plugin.unprepare(claim);
    assert.deepEqual([manager.grants(), cdiFiles()], [[], []]);
    assert.equal((await shared.allowed()).cpus, ALL.cpus);
  });

  it('has them again in a container that starts again, beside another container of the pod', async () => {
    const { claim, plugin, manager } = await withClaim('pod-uid');
    const devices = await plugin.prepare(claim);
    const pod = await fixture.pods.runPod('pod', onOne(devices, { uid: 'pod-uid' }));
    const first = await pod.seen();
    const [before] = manager.grants();
    await pod.stop();
    await pod.createContainer(onOne(devices));
    await pod.start();
    const second = await pod.seen();
    await pod.createContainer(onOne(devices, { containerName: 'sidecar' }));
    await pod.start();
    assert.equal(second.cpus, first.cpus);
    assert.equal((await pod.seen()).cpus, first.cpus);
    assert.deepEqual(manager.grants(), [before]);
    await pod.remove();
    await plugin.unprepare(claim);
  });

  it('has them once if it asks for CPUs of its own, too', async () => {
    const { claim, plugin, manager } = await withClaim('pod-uid');
    const devices = await plugin.prepare(claim);
    const pod = await fixture.pods.runPod('pod', onOne(devices, { uid: 'pod-uid', ...EXCLUSIVE }));
    assert.equal(CpuSet.parse((await pod.seen()).cpus).size, 1);
    assert.equal(manager.grants().length, 1);
    assert.ok(
      fixture.lines.some((line) => /asks for 1 CPUs of its own, and has those of its claim/.test(line)),
    );
    await pod.remove();
    await plugin.unprepare(claim);
  });

  it('is refused in a pod that the claim is not reserved for, and without its CDI file', async () => {
    const { claim, plugin } = await withClaim('pod-uid');
    const devices = await plugin.prepare(claim);
    await assert.rejects(
      fixture.pods.runPod('other', onOne(devices)),
      /reserved for pod pod-uid, not for other/,
    );
    await plugin.unprepare(claim);
    await assert.rejects(
      fixture.pods.runPod('pod', onOne(devices, { uid: 'pod-uid' })),
      /unresolvable CDI devices numalign.io\/claim=claim-uid-0/,
    );
  });

  it('keeps them while numalign-node is away, and is found again', async () => {
    const { claim, plugin, driver, node, manager } = await withClaim('pod-uid');
    const devices = await plugin.prepare(claim);
    const pod = await fixture.pods.runPod('pod', onOne(devices, { uid: 'pod-uid' }));
    const { cpus } = await pod.seen();
    await driver.close();
    await node.close();
    const again = await fixture.startDriver(new Map([['claim', claim]]));
    assert.deepEqual(await again.plugin.prepare(claim), devices);
    assert.equal((await pod.allowed()).cpus, cpus);
    await assert.rejects(again.plugin.unprepare(claim), /ERR_CLAIM_IN_USE/);
    await pod.remove();
    await again.plugin.unprepare(claim);
    await until('the CPUs are free', () => manager.grants().length === 0);
  });

  it('is no container of a claim whose CPUs a process outside of pods has', async () => {
    const { claim, plugin, manager } = await withClaim('pod-uid');
    const outside = await manager.acquire({ cpu: 1, owner: 'persistent' });
    await assert.rejects(plugin.prepare(claim), /ERR_/);
    assert.deepEqual(
      manager.grants().map(({ uid }) => uid),
      [outside.uid],
    );
    await outside.release();
    await plugin.prepare(claim);
    await plugin.unprepare(claim);
  });
});
