// CPUs that really go offline and come back, in a throw-away machine: at least 16 CPUs, root,
// cgroup v2. Run by node --test.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { substituteLostCpus } from '../../../dist-test/lib/admission/grants/substitute.js';
import { HintProviders } from '../../../dist-test/lib/decision/hints/hint-providers.js';
import { noEnforcer } from '../../../dist-test/lib/enforcement/enforcer.js';
import { affinity, threads } from '../../../dist-test/lib/entries/diagnostics.js';
import { discover } from '../../../dist-test/lib/entries/topology.js';
import { CpuSet, openManager } from '../../../dist-test/lib/index.js';
import { parseConfig } from '../../../dist-test/lib/input/config.js';
import { refreshHost } from '../../../dist-test/lib/machine/topology-refresh.js';
import { NO_QUIETER } from '../../../dist-test/lib/quiet/quieter.js';
import { Ledger } from '../../../dist-test/lib/state/ledger.js';
import { threadsOf } from '../../../dist-test/lib/threads/followers.js';
import { Actor } from './actors.mjs';
import { removeCgroup } from './cgroup-removal.mjs';
import { mountCpusetV1, unmountCpusetV1 } from './cpuset-v1.mjs';

const { placement, enforcement } = parseConfig({});

function setOnline(cpu, isOnline) {
  writeFileSync(`/sys/devices/system/cpu/cpu${cpu}/online`, isOnline ? '1' : '0');
}

/** Takes CPUs offline for as long as `body` lasts. */
async function without(cpus, body) {
  for (const cpu of cpus) setOnline(cpu, false);
  try {
    return await body();
  } finally {
    for (const cpu of cpus) setOnline(cpu, true);
  }
}

async function open(options = {}) {
  const stateDir = join(mkdtempSync(join(tmpdir(), 'numalign-test-')), 'state');
  // No repair happens in the background.
  const alone = { sharedMember: false, cpuManagerReconcilePeriod: 0 };
  const manager = await openManager({ stateDir, ...alone, ...options });
  const ledger = Ledger.open(stateDir);
  const host = {
    ...{
      topology: manager.topology,
      ledger,
      enforcer: noEnforcer(),
      quieter: NO_QUIETER,
      managerId: 0,
      enforcement,
    },
    ...{ resources: new Map(), providers: new HintProviders(), lockTimeoutMs: 10_000 },
  };
  const substitute = ({ uid }) => {
    const pod = ledger.read().assignments.pods.find((each) => each.uid === uid);
    return substituteLostCpus(host, pod, placement, threadsOf(ledger, uid, pod));
  };
  return { manager, host, substitute };
}

const outside = (cpus) => threads().filter((thread) => !thread.cpus.isSubsetOf(cpus));

test('threads that are pinned for a grant follow it to the substitute of a CPU that goes offline', async () => {
  const { manager, substitute } = await open({ reservedSystemCPUs: '0-1' });
  const grant = await manager.acquire({ cpu: 3 });
  grant.pin();
  const before = grant.cpus;
  const lost = [...before].at(-1);
  await without([lost], async () => {
    const found = await substitute(grant);
    assert.equal(String(found.lost), String(lost));
    assert.equal(found.substitutes.size, 1);
    assert.ok(!grant.cpus.has(lost) && grant.cpus.size === 3);
    assert.deepEqual(outside(grant.cpus), []);
    assert.deepEqual(affinity(), grant.cpus);
    assert.deepEqual(grant.flags(), []);
    assert.equal(await substitute(grant), undefined);
  });
  assert.ok(manager.freeCpus().has(lost));
  const { unmovable } = await grant.release();
  assert.deepEqual(unmovable, []);
  manager.close();
});

test('a manager notices that a CPU of a partition is offline, repairs the grant, and reports it', async () => {
  const { manager } = await open({ reservedSystemCPUs: '0-1', cgroupRoot: '/numalign-hotplug' });
  const notices = [];
  manager.on('hotplug', ({ uid, lost, substitutes }) => notices.push([uid, String(lost), substitutes.size]));
  const grant = await manager.acquire({ cpu: 2, require: 'partition' });
  grant.pin();
  const [kept, lost] = grant.cpus;
  await without([lost], async () => {
    assert.deepEqual(
      grant.flags().map(({ code, cpus }) => [code, String(cpus)]),
      [['CPU_OFFLINE', String(lost)]],
    );
    await manager.reconcile();
    assert.deepEqual(notices, [[grant.uid, String(lost), 1]]);
    assert.ok(grant.cpus.has(kept) && !grant.cpus.has(lost) && grant.cpus.size === 2);
    assert.deepEqual(affinity(), grant.cpus);
    assert.deepEqual(
      manager.grants().map(({ uid, flags, enforcement: level }) => [uid, flags, level]),
      [[grant.uid, [], 'partition']],
    );
  });
  await manager.reconcile();
  assert.ok(manager.freeCpus().has(lost));
  await grant.release();
  manager.close();
});

test('a manager learns from the kernel that a CPU is offline, long before its next round', async () => {
  const { manager } = await open({ reservedSystemCPUs: '0-1', cpuManagerReconcilePeriod: '1h' });
  const grant = await manager.acquire({ cpu: 2 });
  grant.pin();
  const lost = [...grant.cpus].at(-1);
  const heard = once(manager, 'hotplug');
  // Listening to the kernel keeps no process alive.
  const alive = setInterval(() => {}, 1000);
  await without([lost], async () => {
    const [hotplug] = await heard;
    clearInterval(alive);
    assert.deepEqual([hotplug.uid, String(hotplug.lost)], [grant.uid, String(lost)]);
    assert.ok(!grant.cpus.has(lost) && grant.cpus.size === 2);
  });
  await grant.release();
  manager.close();
});

test('threads that the kernel lets run anywhere, as all their CPUs are offline, move to the substitutes', async () => {
  const { manager, substitute } = await open({ reservedSystemCPUs: '0-1' });
  const grant = await manager.acquire({ cpu: 1 });
  grant.pin();
  await without(grant.cpus, async () => {
    assert.ok(!affinity().isSubsetOf(grant.cpus), 'the kernel runs a thread nowhere else');
    const { isParked, revoked } = await substitute(grant);
    assert.equal(isParked, false);
    assert.ok(revoked.isEmpty);
    assert.deepEqual(outside(grant.cpus), []);
  });
  await grant.release();
  manager.close();
});

test('threads keep the remaining CPUs of their own choice, and those without any get the whole grant', async () => {
  const { manager, substitute } = await open({ reservedSystemCPUs: '0-1' });
  const grant = await manager.acquire({ cpu: 2 });
  const [one, other] = grant.cpus;
  const script = `
    import { parentPort } from 'node:worker_threads';
    import { affinity } from '${new URL('../../../dist-test/lib/entries/diagnostics.js', import.meta.url)}';
    import { pinThread } from '${new URL('../../../dist-test/lib/index.js', import.meta.url)}';
    parentPort.on('message', (cpu) => {
      if (cpu !== undefined) pinThread(String(cpu));
      parentPort.postMessage(String(affinity()));
    });
    parentPort.postMessage('ready');`;
  const worker = new Worker(new URL(`data:text/javascript,${encodeURIComponent(script)}`));
  const answer = (...ask) => {
    if (ask.length > 0) worker.postMessage(ask[0]);
    return new Promise((resolve) => worker.once('message', resolve));
  };
  await answer();
  grant.pin();
  assert.equal(await answer(one), String(one));
  await without([other], async () => {
    await substitute(grant);
    assert.equal(await answer(undefined), String(one));
    assert.deepEqual(affinity(), grant.cpus);
  });
  await without([one], async () => {
    await substitute(grant);
    assert.equal(await answer(undefined), String(grant.cpus));
  });
  await worker.terminate();
  await grant.release();
  manager.close();
});

test('without room threads run on the CPUs that are left, or wait in the shared pool, and come back', async () => {
  const { manager, substitute } = await open({ managedCPUs: '2-4' });
  const grant = await manager.acquire({ cpu: 2 });
  grant.pin();
  const [one, other] = grant.cpus;
  const pool = manager.sharedPool();
  await without([one], async () => {
    const found = await substitute(grant);
    assert.equal(String(found.revoked), String(one));
    assert.equal(found.error.code, 'ERR_INSUFFICIENT_CPUS');
    assert.deepEqual(outside(CpuSet.of(other)), []);
    await without([other], async () => {
      assert.equal((await substitute(grant)).isParked, true);
      assert.deepEqual(affinity(), pool);
      assert.deepEqual(outside(pool), []);
    });
    assert.equal(String((await substitute(grant)).returned), String(other));
    assert.deepEqual(outside(CpuSet.of(other)), []);
  });
  assert.equal(String((await substitute(grant)).returned), String(one));
  assert.deepEqual(affinity(), grant.cpus);
  await grant.release();
  manager.close();
});

test('a grant that is released while its CPUs are offline leaves no thread on CPUs of another grant', async () => {
  const { manager } = await open({ reservedSystemCPUs: '0-1' });
  const grant = await manager.acquire({ cpu: 1 });
  const other = await manager.acquire({ cpu: 4, owner: 'persistent' });
  grant.pin();
  await without(grant.cpus, async () => {
    await grant.release();
    assert.equal(affinity().intersects(other.cpus), false);
    assert.deepEqual(outside(manager.sharedPool()), []);
  });
  await manager.release(other.uid);
  manager.close();
});

test('a CPU that comes online is known after the next discovery', async () => {
  await without([15], async () => {
    const { manager, host } = await open();
    assert.equal(manager.sharedPool().has(15), false);
    assert.equal(String(await refreshHost(host)), '');
    setOnline(15, true);
    assert.equal(String(await refreshHost(host)), '15');
    assert.ok(host.topology.cpus.has(15) && host.topology.allowed.has(15));
    assert.equal(String(await refreshHost(host)), '');
    manager.close();
  });
});

test('a process that has moved to a narrower cpuset may still use all CPUs that it could', async () => {
  const group = '/sys/fs/cgroup/numalign-test';
  const host = await without([15], async () => ({ topology: await discover() }));
  mkdirSync(group);
  try {
    writeFileSync(`${group}/cpuset.cpus`, '4-5');
    writeFileSync(`${group}/cgroup.procs`, String(process.pid));
    assert.equal(String((await discover()).allowed), '4-5');
    assert.equal(String(await refreshHost(host)), '15');
    assert.equal(String(host.topology.allowed), '0-14');
  } finally {
    writeFileSync('/sys/fs/cgroup/cgroup.procs', String(process.pid));
    rmdirSync(group);
  }
});

test('a grant of a stopped owner gets a substitute or its CPU back once the owner goes on', async () => {
  const options = {
    stateDir: join(mkdtempSync(join(tmpdir(), 'numalign-test-')), 'state'),
    reservedSystemCPUs: '0-1',
  };
  const owner = new Actor();
  try {
    await owner.open({ ...options, cpuManagerReconcilePeriod: 0 });
    const { uid, cpus } = await owner.acquire({ cpu: 2 });
    await owner.grant('pin');
    const manager = await openManager({ ...options, sharedMember: false, cpuManagerReconcilePeriod: 0 });
    const lost = CpuSet.parse(cpus).first;
    process.kill(owner.pid, 'SIGSTOP');
    await without([lost], async () => {
      await manager.reconcile();
      assert.deepEqual(
        manager
          .grant(uid)
          .flags()
          .map(({ code }) => code),
        ['CPU_OFFLINE'],
      );
      const other = await manager.acquire({ cpu: 4 });
      assert.ok(!other.cpus.has(lost) && !other.cpus.intersects(CpuSet.parse(cpus)));
      await other.release();
    });
    await manager.reconcile();
    assert.deepEqual(manager.grant(uid).flags(), []);
    process.kill(owner.pid, 'SIGCONT');
    await owner.do((_, mine) => mine.manager.reconcile());
    assert.equal(await owner.get('cpus'), cpus);
    assert.deepEqual(
      await owner
        .do((numalign) => numalign.threads().map((thread) => String(thread.cpus)))
        .then((all) => [...new Set(all)]),
      [cpus],
    );
    manager.close();
  } finally {
    process.kill(owner.pid, 'SIGCONT');
    await owner.kill();
  }
});

test('nothing is lost while the last shared CPU is offline', async () => {
  const { manager } = await open({ managedCPUs: '2-4', cgroupRoot: '/numalign-hotplug' });
  const grant = await manager.acquire({ cpu: 2 });
  grant.pin();
  const { enforcement, cpus } = grant;
  const pool = manager.sharedPool();
  await without(pool, async () => {
    assert.equal(String(manager.sharedPool()), '');
    await manager.reconcile();
    assert.deepEqual([String(grant.cpus), grant.enforcement], [String(cpus), enforcement]);
    await assert.rejects(manager.acquire({ cpu: 1 }), { code: 'ERR_INSUFFICIENT_CPUS' });
    assert.deepEqual(affinity(), grant.cpus);
  });
  await manager.reconcile();
  assert.deepEqual([String(manager.sharedPool()), String(grant.cpus)], [String(pool), String(cpus)]);
  assert.equal(grant.enforcement, enforcement);
  await grant.release();
  manager.close();
});

test('with cgroup v1, cpusets get a CPU back that comes online', async () => {
  // Cgroups that enable the controller below keep it in v2.
  for (const name of readdirSync('/sys/fs/cgroup'))
    if (name.startsWith('numalign')) removeCgroup(join('/sys/fs/cgroup', name));
  const point = await mountCpusetV1();
  try {
    const { manager } = await open({
      reservedSystemCPUs: '0-1',
      managedCPUs: '0-4',
      sharedMember: true,
      cgroupRoot: '/numalign-v1',
    });
    const grant = await manager.acquire({ cpu: 2, require: 'cpuset' });
    grant.pin();
    const { cpus } = grant;
    const [lost] = cpus;
    const pool = manager.sharedPool().difference(CpuSet.parse('0-1')).first;
    const rootCpus = () => readFileSync(join(point, 'numalign-v1', 'cpuset.cpus'), 'utf8').trim();
    await without([lost, pool], async () => {
      await manager.reconcile();
      assert.equal(CpuSet.parse(rootCpus()).has(lost), false);
    });
    const { drifts } = await manager.reconcile();
    assert.ok(
      drifts.every(({ repaired }) => repaired),
      JSON.stringify(drifts),
    );
    assert.equal(rootCpus(), '0-15');
    assert.deepEqual([String(grant.cpus), grant.enforcement], [String(cpus), 'cpuset']);
    assert.deepEqual(affinity(), grant.cpus);
    await grant.release();
    assert.equal(readFileSync(join(point, 'numalign-v1', 'shared', 'cpuset.cpus'), 'utf8').trim(), '0-4');
    manager.close();
  } finally {
    const root = join(point, 'numalign-v1');
    const groups = readdirSync(root, { withFileTypes: true }).filter((entry) => entry.isDirectory());
    for (const folder of [...groups.map(({ name }) => join(root, name)), root]) {
      const tids = readFileSync(join(folder, 'tasks'), 'utf8').split('\n').filter(Boolean);
      for (const tid of tids) writeFileSync(join(point, 'tasks'), tid);
      rmdirSync(folder);
    }
    await unmountCpusetV1(point);
  }
});
