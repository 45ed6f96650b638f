// Parts of a grant: threads of one process on separate CPUs, at every level of enforcement. For
// node --test in a virtual machine of 16 CPUs with cgroup v2, as root.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { affinity, threadId, threads } from '../../../dist/entries/diagnostics.js';
import { openManager, pinThread } from '../../../dist/index.js';
import { removeCgroup } from './cgroup-removal.mjs';

const folder = mkdtempSync(join(tmpdir(), 'numalign-vm-'));
after(() => rmSync(folder, { recursive: true }));
const ROOT = '/numalign-parts';
const CLI = fileURLToPath(new URL('../../../packages/cli/dist/main.cjs', import.meta.url));
const OWN = affinity();

// Reports its thread id and the CPUs that it was born on, from the kernel.
const WORKER = `
  const { readFileSync, readlinkSync } = require('node:fs');
  const { parentPort } = require('node:worker_threads');
  const tid = Number(readlinkSync('/proc/thread-self').split('/').at(-1));
  const mask = /Cpus_allowed_list:\\s*(.*)/.exec(readFileSync('/proc/thread-self/status', 'utf8'))[1];
  parentPort.postMessage({ tid, mask });
  setInterval(() => {}, 1000);`;

async function reportOf(worker) {
  const [message] = await once(worker, 'message');
  // It does not keep a failed test from ending.
  worker.unref();
  return { worker, ...message };
}
const maskOf = (pid, tid = pid) =>
  /^Cpus_allowed_list:\s*(\S+)$/m.exec(readFileSync(`/proc/${pid}/task/${tid}/status`, 'utf8'))[1];
const masksOf = (pid) => [...new Set(readdirSync(`/proc/${pid}/task`).map((tid) => maskOf(pid, tid)))];

/** `own`: masks by thread id; all other threads must have the rest. */
function assertApart(grant, own) {
  for (const { tid, role, cpus } of threads())
    assert.equal(String(cpus), String(own.get(tid) ?? grant.sharedCpus), `thread ${tid}, ${role}`);
}

for (const level of ['members', 'partition', 'isolated']) {
  describe(`threads of a grant with parts (${level})`, () => {
    const options = {
      stateDir: join(folder, level),
      cpuManagerReconcilePeriod: 0,
      enforcement: level,
      ...(level === 'members' ? {} : { cgroupRoot: ROOT }),
    };
    const isIsolated = level === 'isolated';

    it('are on separate CPUs, in whatever order they start', async (test) => {
      const manager = await openManager(options);
      test.after(() => manager.close());
      const grant = await manager.acquire({ cpu: 6, parts: { main: 1, io: 1 }, require: level });
      assert.equal(grant.enforcement, level);
      const { main, io } = grant.parts;
      // The kernel balances no load among isolated CPUs: each thread has one.
      if (isIsolated) await grant.placeThreads();
      else grant.pin();
      const isShared = ({ cpus }) =>
        isIsolated ? cpus.isSubsetOf(grant.sharedCpus) : cpus.equals(grant.sharedCpus);
      assert.ok(threads().every(isShared));
      const { moved, memory } = grant.part('main').pin();
      assert.equal(String(moved[0].cpus), String(main));
      const unknown = { code: 'ERR_UNKNOWN_PART', details: { value: '', valid: ['main', 'io'] } };
      assert.throws(() => grant.worker(WORKER, { eval: true, part: '' }), unknown);
      // One CPU of the two that the grant has.
      assert.equal(grant.memoryNodes.size, 2);
      assert.equal(String(memory.nodes), String(grant.part('main').numaNodes));
      const [first, other, plain] = await Promise.all([
        reportOf(grant.worker(WORKER, { eval: true, part: 'io' })),
        reportOf(grant.worker(WORKER, { eval: true })),
        reportOf(new Worker(WORKER, { eval: true })),
      ]);
      await Promise.all(Array.from({ length: 8 }, () => readFile('/proc/self/stat')));
      assert.equal(first.mask, String(io));
      assert.ok(String(main) === plain.mask, 'a plain Worker is born where the thread is that starts it');
      const own = new Map([
        [threadId(), main],
        [first.tid, io],
      ]);
      if (isIsolated) {
        await grant.placeThreads();
        for (const thread of threads())
          assert.ok(own.get(thread.tid)?.equals(thread.cpus) ?? isShared(thread));
      } else {
        assertApart(grant, new Map([...own, [plain.tid, main]]));
        grant.pin();
        assertApart(grant, own);
      }
      assert.equal(grant.schedule({ nice: 5 }).nice, 5);
      const { cgroups } = manager.status().grants[0];
      assert.deepEqual(
        cgroups.map(({ container, isMade }) => [container, isMade]),
        level === 'members' ? [] : [[null, true]],
      );
      // In a virtual machine a command takes seconds.
      if (level === 'partition') {
        const { stdout } = spawnSync(process.execPath, [CLI, 'status', '--state-dir', options.stateDir]);
        const rows = String(stdout).match(/[├└]─ .*/g);
        const shown = rows.map((row) => row.trim().split(/ +/).slice(1, 3).join(' '));
        assert.deepEqual(shown, [`main ${main}`, `io ${io}`, `.shared ${grant.sharedCpus}`]);
      }
      // Others change masks.
      assert.deepEqual((await manager.reconcile()).drifts, []);
      pinThread(grant.sharedCpus, first.tid);
      pinThread(io, other.tid);
      const { drifts } = await manager.reconcile();
      assert.equal(drifts.length, 2, JSON.stringify(drifts));
      assert.equal(maskOf(process.pid, first.tid), String(io));
      assert.ok(affinity(other.tid).isSubsetOf(grant.sharedCpus));
      assert.equal(String(affinity()), String(main));

      await grant.placeThreads({ main: { part: 'main' }, workers: { part: 'io' } });
      for (const { tid } of [first, other]) assert.equal(maskOf(process.pid, tid), String(io));
      assert.equal(String(affinity()), String(main));

      const child = grant.spawn('sleep', ['1000'], { stdio: 'ignore' });
      test.after(() => child.kill());
      const stranger = spawn('sh', ['-c', 'sleep 1000 & wait'], { stdio: 'ignore', detached: true });
      test.after(() => stranger.signalCode ?? process.kill(-stranger.pid, 'SIGKILL'));
      await grant.attach(stranger.pid);
      assert.deepEqual(masksOf(child.pid), [String(grant.sharedCpus)]);
      assert.deepEqual(masksOf(stranger.pid), [String(grant.sharedCpus)]);
      assert.deepEqual((await manager.reconcile()).drifts, []);
      child.kill();
      process.kill(-stranger.pid, 'SIGKILL');
      await Promise.all([once(child, 'exit'), once(stranger, 'exit')]);

      await Promise.all([first, other, plain].map(({ worker }) => worker.terminate()));
      await grant.unpin();
      for (const { cpus } of threads()) assert.ok(!cpus.intersects(grant.cpus), String(cpus));
      if (!isIsolated) {
        grant.pin();
        grant.part('io').pin();
      }
      await grant.release();
      assert.ok(threads().every(({ cpus }) => cpus.equals(OWN)));
    });
  });
}

describe('threads of a part whose CPUs go offline', () => {
  const setOnline = (cpu, isOnline) =>
    writeFileSync(`/sys/devices/system/cpu/cpu${cpu}/online`, isOnline ? '1' : '0');

  async function opened(test, managedCPUs) {
    const options = { managedCPUs, cpuManagerReconcilePeriod: 0, stateDir: join(folder, managedCPUs) };
    const manager = await openManager(options);
    const grant = await manager.acquire({ cpu: 3, parts: { main: 1 } });
    const lost = grant.parts.main.first;
    test.after(async () => {
      setOnline(lost, true);
      await grant.release();
      manager.close();
    });
    grant.pin();
    grant.part('main').pin();
    setOnline(lost, false);
    await manager.reconcile();
    return { manager, grant, lost };
  }

  it('move to another CPU if there is one, and the others stay', async (test) => {
    const { grant, lost } = await opened(test, '0-5');
    const { main } = grant.parts;
    assert.ok(!main.has(lost) && main.size === 1 && !main.intersects(grant.sharedCpus));
    assertApart(grant, new Map([[threadId(), main]]));
  });

  it('wait on the other CPUs if there is none, until it is back', async (test) => {
    const { manager, grant, lost } = await opened(test, '0-3');
    assertApart(grant, new Map());
    // It stays where it waits, and does not count as one of the others.
    grant.pin();
    assert.deepEqual((await manager.reconcile()).drifts, []);
    setOnline(lost, true);
    await manager.reconcile();
    assert.equal(String(grant.parts.main), String(lost));
    assertApart(grant, new Map([[threadId(), grant.parts.main]]));
  });
});

after(() => removeCgroup(`/sys/fs/cgroup${ROOT}`));
