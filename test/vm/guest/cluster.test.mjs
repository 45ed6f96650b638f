// Clusters on a machine where several workers have CPUs of their own, with CPUs to spare: 16 CPUs
// and cgroup v2, as root. Run by node --test.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { get } from 'node:http';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import cluster from '../../../dist/entries/cluster.js';
import { AdmissionError, openManager } from '../../../dist/index.js';
import { removeCgroup } from './cgroup-removal.mjs';
import * as kernel from './kernel-view.mjs';
import { newStateDir } from './state-folders.mjs';

const file = (name) => fileURLToPath(new URL(`../../cluster/${name}.mjs`, import.meta.url));
const PORT = 8080;
const WORKERS = 3;
const SERVE = { TASK: 'serve', MARK: String(PORT) };

async function until(condition) {
  for (let i = 0; i < 600; i++) {
    if (await condition()) return;
    await pause(100);
  }
  throw new Error(`has not come: ${condition}`);
}

/** A worker's report in its first line, with its grant and its masks in the kernel. */
async function assertPlaced(worker) {
  const [{ cpus, granted }] = await once(worker, 'message');
  const own = String(worker.grant.cpus);
  assert.deepEqual([cpus, granted], [own, own]);
  for (const mask of kernel.masks(worker.process.pid)) assert.deepEqual(mask, kernel.parseList(own));
}

const isDisjoint = (sets) => sets.flat().length === new Set(sets.flat()).size;
const ask = () =>
  new Promise((resolve, reject) => {
    get({ port: PORT, host: '127.0.0.1', agent: false }, (response) => {
      response.resume().on('end', resolve);
    }).on('error', reject);
  });

for (const enforcement of ['members', 'partition']) {
  describe(`workers of a cluster (${enforcement})`, () => {
    const options = { stateDir: newStateDir(), cgroupRoot: '/numalign-cluster', enforcement };
    const group = join('/sys/fs/cgroup', options.cgroupRoot);
    const request = { cpu: 2, policy: 'single-numa-node', require: enforcement };
    let manager;
    let workers;
    before(async () => {
      manager = await openManager({ ...options, reservedSystemCPUs: '0' });
      cluster.setupPrimary({ manager, exec: file('worker') });
    });
    after(async () => {
      await new Promise((resolve) => cluster.disconnect(resolve));
      await until(() => manager.grants().length === 0);
      // Their masks are restored after their record is removed.
      await until(() => readFileSync(join(group, 'cpuset.cpus'), 'utf8').trim() === '');
      manager.close();
      removeCgroup(group);
    });

    it('are each on their own CPUs in their first line', async () => {
      workers = await Promise.all(
        Array.from({ length: WORKERS }, async () => {
          const worker = await cluster.fork({ ...request, env: SERVE });
          const served = once(worker, 'listening');
          await assertPlaced(worker);
          await served;
          return worker;
        }),
      );
      const cpus = workers.map(({ grant }) => grant.cpus.toArray());
      assert.ok(isDisjoint([[0], ...cpus]), JSON.stringify(cpus));
      for (const { grant } of workers) assert.equal(kernel.nodesOf(grant.cpus.toArray()).length, 1);
      assert.ok(isDisjoint([...cpus, manager.sharedPool().toArray()]));
    });

    it('run in the shared pool if they are optional and no CPUs are left', async () => {
      const rest = await manager.acquire({ cpu: manager.freeCpus().size });
      const worker = await cluster.fork({ ...request, optional: true });
      const [{ cpus }] = await once(worker, 'message');
      assert.equal(worker.grant, null);
      assert.ok(worker.refusal instanceof AdmissionError);
      assert.equal(cpus, '0');
      await rest.release();
      worker.kill();
      await once(worker, 'exit');
    });

    it('have successors on the same CPUs if they are killed', async () => {
      for (const [i, worker] of workers.entries()) {
        const forked = once(cluster, 'fork');
        process.kill(worker.process.pid, 'SIGKILL');
        const [again] = await forked;
        assert.equal(again.grant, worker.grant);
        await assertPlaced(again);
        workers[i] = again;
      }
      assert.equal(manager.grants().length, WORKERS);
      await until(() => cluster.workers[workers.at(-1).id].process.connected);
    });

    it('get CPUs at a restart before the old workers give up theirs, and no connection is refused', async () => {
      let isOver = false;
      const asking = (async () => {
        while (!isOver) await ask();
      })();
      const held = workers.map(({ grant }) => grant);
      const placed = [];
      const listener = (worker) => placed.push(assertPlaced(worker));
      cluster.on('fork', listener);
      const replaced = await cluster.restart();
      cluster.off('fork', listener);
      isOver = true;
      await Promise.all([asking, ...placed]);
      assert.deepEqual(
        replaced.map(({ before, overlapped, killed }) => [before, overlapped, killed]),
        workers.map((worker) => [worker, true, false]),
      );
      assert.equal(placed.length, WORKERS);
      await until(() => manager.grants().length === WORKERS);
      const now = replaced.map(({ worker }) => worker.grant.uid);
      assert.deepEqual(
        manager
          .grants()
          .map(({ uid }) => uid)
          .sort(),
        now.sort(),
      );
      assert.ok(held.every((grant) => grant.isReleased));
    });

    it('end with a primary that is killed, and leave all CPUs free', async () => {
      const all = manager.freeCpus();
      const forks = JSON.stringify([{ cpu: 3 }, { cpu: 2 }]);
      const primary = spawn(process.execPath, [file('primary')], {
        env: { ...process.env, STATE_DIR: options.stateDir, FORKS: forks },
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      const [line] = await once(primary.stdout, 'data');
      const started = JSON.parse(line);
      assert.ok(
        isDisjoint([...manager.grants().map(({ cpus }) => cpus.toArray()), manager.sharedPool().toArray()]),
      );
      assert.equal(manager.grants().length, WORKERS + 2);
      primary.kill('SIGKILL');
      await until(() => started.every(({ pid }) => !existsSync(`/proc/${pid}/exe`)));
      await until(() => manager.freeCpus().equals(all));
    });
  });
}
