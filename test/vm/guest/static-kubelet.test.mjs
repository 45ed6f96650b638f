// A process beside the pods of a kubelet with the static policy, in a machine with room for both.
// The test writes the kubelet's file in its format, and sets the CPUs of its pod through CRI. Run
// by node --test, as root.
import assert from 'node:assert/strict';
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, beforeEach, describe, it } from 'node:test';
import { NodeAgent } from '@numalign/kubernetes';
import { CpuSet, pin } from 'numalign';
import { CPU_MANAGER_STATE, formatCpuManagerState } from 'numalign/kubelet';
import { NodeFixture, until } from '../../../packages/kubernetes/test/containers/support/node-fixture.mjs';
import * as kernel from './kernel-view.mjs';

const CPUS = 2;
const PATIENCE_MS = 30_000;
const all = CpuSet.from(kernel.online());
const fixture = new NodeFixture();

describe('a process that is granted CPUs beside the pods of a static kubelet', () => {
  let stateFolder;
  let pod;
  let manager;
  let agent;
  let chosen;

  /** The kubelet gives CPUs to the pod's container: in its file, and in the container's cpuset. */
  const give = async (cpus) => {
    const entries = new Map([[pod.uid, new Map([['main', cpus]])]]);
    const state = { policyName: 'static', defaultCpuSet: all.difference(cpus), entries };
    const file = join(stateFolder, CPU_MANAGER_STATE);
    writeFileSync(`${file}.new`, formatCpuManagerState(state));
    renameSync(`${file}.new`, file);
    await pod.update({ cpuset_cpus: String(cpus) });
  };
  const podCpus = async () => CpuSet.parse((await pod.allowed()).cpus);
  /** Every thread of this process is on these CPUs. */
  const isOn = (cpus) => kernel.masks().every((mask) => CpuSet.from(mask).equals(cpus));

  before(() => fixture.open({ nri: false }));
  after(() => fixture.close());
  beforeEach(async () => {
    fixture.begin();
    stateFolder = mkdtempSync(join(tmpdir(), 'numalign-kubelet-'));
    pod = await fixture.pods.runPod('exclusive');
    manager = await fixture.openManager({});
    const paths = { deviceFolder: join(stateFolder, 'none'), podResourcesSocket: join(stateFolder, 'sock') };
    agent = new NodeAgent({
      ...{ manager, log: () => {}, nri: null, devicePlugin: null, publish: null },
      kubelet: { stateFolder, ...paths },
    });
    // The CPUs that it would get on a machine without a kubelet.
    const first = await manager.acquire({ cpu: CPUS });
    chosen = first.cpus;
    await first.release();
  });
  afterEach(async () => {
    await agent.close();
    for (const { uid } of manager.grants()) await manager.release(uid);
    pin(all);
    await fixture.end();
    rmSync(stateFolder, { recursive: true });
  });

  it('runs on CPUs that the kubelet has not given out', async () => {
    await give(chosen);
    await agent.start();
    const grant = await manager.acquire({ cpu: CPUS });
    grant.pin();
    assert.equal(grant.cpus.size, CPUS);
    assert.equal(isOn(grant.cpus), true);
    assert.equal(String(await podCpus()), String(chosen));
    assert.equal(grant.cpus.intersects(chosen), false);
  });

  it('leaves CPUs that the kubelet gives out later, if it consents to moves', async () => {
    await give(CpuSet.of(all.toArray().at(-1)));
    await agent.start();
    const grant = await manager.acquire({ cpu: CPUS, onTaken: 'move' });
    grant.pin();
    assert.equal(String(grant.cpus), String(chosen));
    await give(chosen);
    await until('it is moved', () => !grant.cpus.intersects(chosen) && isOn(grant.cpus), PATIENCE_MS);
    assert.equal(grant.cpus.size, CPUS);
    assert.equal(String(await podCpus()), String(chosen));
  });
});
