// The slices of a real kubelet (cgroupfs, cgroup v1) have the shared pool: it leaves them so, also when
// it starts again, and its pods that are created without the agent keep off exclusive CPUs.
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, it } from 'node:test';
import { NumalignNode } from '@numalign/kubernetes';
import { openManager } from 'numalign';
import { Containerd } from '../containers/support/containerd.mjs';
import { allowedOf } from '../containers/support/process-view.mjs';
import { Kubelet, until } from './kubelet.mjs';

const MEMORY = { memory: '32Mi' };
// It looks at the cgroups of its classes once a minute.
const QOS_PERIOD_MS = Number(process.env.NUMALIGN_TEST_LONG ? 70_000 : 0);

let runtime;
let kubelet;
let stateDir;
let manager;
let node;

async function startNode() {
  manager = await openManager({ stateDir, cgroupRoot: null, lockTimeoutMs: 1000, besideKubelet: true });
  node = new NumalignNode({ manager, nriSocket: runtime.nriSocketPath, slices: 'pool' });
  await node.start();
}
async function stopNode() {
  await node?.close();
  manager?.close();
}

before(async () => {
  stateDir = mkdtempSync(join(tmpdir(), 'numalign-kube-'));
  runtime = await Containerd.start();
  kubelet = await Kubelet.start(runtime);
});
after(async () => {
  await stopNode();
  for (const name of kubelet?.podNames ?? []) await kubelet.removePod(name);
  await kubelet?.kill();
  await runtime?.close();
  rmSync(stateDir, { recursive: true, force: true });
});

const cpusOf = async (name) => {
  const pid = await until(`pod ${name} runs`, () => kubelet.pidOf(name));
  return allowedOf(pid).cpus;
};
const sliceCpus = (name) =>
  readFileSync(`/sys/fs/cgroup/cpuset${runtime.cgroupParent}/kubepods${name}/cpuset.cpus`, 'utf8').trim();

it('A kubelet leaves its slices as they are', async () => {
  await startNode();
  kubelet.addPod('exclusive', { ...MEMORY, cpu: '1' });
  const exclusive = await cpusOf('exclusive');
  const pool = `${manager.sharedPool()}`;
  assert.notEqual(exclusive, pool);
  const haveThePool = () => ['/burstable', '/besteffort'].every((name) => sliceCpus(name) === pool);
  await until('the slices have the pool', haveThePool);
  await stopNode();
  await kubelet.kill('SIGTERM');
  await kubelet.start();
  kubelet.addPod('burstable', MEMORY);
  kubelet.addPod('besteffort', {});
  assert.equal(await cpusOf('burstable'), pool);
  assert.equal(await cpusOf('besteffort'), pool);
  await new Promise((resolve) => setTimeout(resolve, QOS_PERIOD_MS));
  assert.ok(haveThePool());
  await startNode();
  await kubelet.removePod('exclusive');
  const all = `${manager.topology.cpus}`;
  await until('everything grows again', async () => (await cpusOf('burstable')) === all);
  await until('the slices, too', () => sliceCpus('/burstable') === all);
});
