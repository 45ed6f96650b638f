// A container on its CPUs from its first instruction, and containers that started before.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { CpuSet } from 'numalign';
import { ALL, allCpusBut, EXCLUSIVE, guaranteed, until, useNodeFixture } from './support/node-fixture.mjs';

describe('Containers are created on a node that runs numalign-node', () => {
  const fixture = useNodeFixture();

  describe('one with exclusive CPUs', () => {
    it('has them and its memory nodes at its first instruction, in its environment too', async () => {
      const { manager } = await fixture.startNode();
      const pod = await fixture.pods.runPod('exclusive', EXCLUSIVE);
      const { cpus, mems, env } = await pod.seen();
      const [grant] = manager.grants();
      assert.equal(CpuSet.parse(cpus).size, 1);
      assert.equal(cpus, String(grant.cpus));
      assert.equal(mems, ALL.mems);
      assert.equal(env.NUMALIGN_CPUS, cpus);
      assert.equal(env.NUMALIGN_GRANT, pod.containerId);
      assert.equal(grant.uid, pod.containerId);
      assert.equal(grant.name, 'numalign:default/exclusive/main');
    });

    it('starts after the others have left these CPUs', async () => {
      await fixture.startNode();
      const shared = await fixture.pods.runPod('shared');
      assert.equal((await shared.seen()).cpus, ALL.cpus);
      const pod = await fixture.pods.createPod('exclusive', EXCLUSIVE);
      const left = (await shared.allowed()).cpus;
      await pod.start();
      const { cpus } = await pod.seen();
      assert.equal(left, allCpusBut(cpus));
      assert.equal((await shared.seen()).env.NUMALIGN_CPUS, undefined);
      assert.equal((await (await fixture.pods.runPod('later')).seen()).cpus, left);
    });

    it('owns its grant by its cgroup once it runs', async () => {
      const { manager } = await fixture.startNode();
      const pod = await fixture.pods.createPod('exclusive', EXCLUSIVE);
      assert.equal(manager.grants()[0].owner.kind, 'persistent');
      await pod.start();
      const owner = await until('the cgroup owns the grant', () =>
        manager
          .grants()
          .map((grant) => grant.owner)
          .find(({ kind }) => kind === 'cgroup'),
      );
      assert.equal(owner.cgroup, await pod.cpusetFolder());
    });

    it('gives them back when it is stopped, and then the others have them again', async () => {
      const { manager } = await fixture.startNode();
      const shared = await fixture.pods.runPod('shared');
      const pod = await fixture.pods.runPod('exclusive', EXCLUSIVE);
      assert.notEqual((await shared.allowed()).cpus, ALL.cpus);
      await pod.stop();
      assert.equal((await shared.allowed()).cpus, ALL.cpus);
      assert.deepEqual(manager.grants(), []);
    });

    it('has no reserved ones', async () => {
      const [reserved] = CpuSet.parse(ALL.cpus);
      await fixture.startNode({ reservedSystemCPUs: String(reserved) });
      const pod = await fixture.pods.runPod('exclusive', EXCLUSIVE);
      assert.equal((await pod.seen()).cpus, allCpusBut(String(reserved)));
    });
  });

  describe('one that cannot have what it asks for', () => {
    it('is refused with the explanation; nothing stays on record, and the next one works', async () => {
      const { manager, node } = await fixture.startNode();
      const shared = await fixture.pods.runPod('shared');
      await assert.rejects(fixture.pods.runPod('large', { resources: guaranteed(64) }), {
        message: /64 (exclusive CPUs )?requested.* free by NUMA node: .*no policy would admit it now/,
      });
      assert.deepEqual(manager.grants(), []);
      assert.equal((await shared.allowed()).cpus, ALL.cpus);
      assert.deepEqual(
        node.containers.map(({ title }) => title),
        ['numalign:default/shared/main'],
      );
      const pod = await fixture.pods.runPod('exclusive', EXCLUSIVE);
      assert.equal((await pod.seen()).cpus, String(manager.grants()[0].cpus));
    });

    it('gets an error about wrong annotations', async () => {
      const { manager } = await fixture.startNode();
      const annotations = { 'numalign.io/cpu': 'two' };
      await assert.rejects(fixture.pods.runPod('wrong', { annotations }), {
        message: /annotation numalign\.io\/cpu is "two", not a whole number of CPUs/,
      });
      assert.deepEqual(manager.grants(), []);
    });

    it('has nothing on record if the runtime fails to create it', async () => {
      const { manager, node } = await fixture.startNode();
      const shared = await fixture.pods.runPod('shared');
      const mounts = [{ container_path: '/nowhere', host_path: '/proc/nowhere/at/all' }];
      await assert.rejects(fixture.pods.runPod('broken', { ...EXCLUSIVE, mounts }));
      await until('the grant is given back', () => manager.grants().length === 0);
      await until('the shared one is back', async () => (await shared.allowed()).cpus === ALL.cpus);
      assert.equal(node.containers.length, 1);
    });
  });
});
