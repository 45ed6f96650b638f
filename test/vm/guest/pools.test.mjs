// Workers that packages construct, one per CPU from their first instruction. For node --test in a
// virtual machine of 16 CPUs with cgroup v2, as root.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { Piscina } from 'piscina';
import { Tinypool } from 'tinypool';
import workerpool from 'workerpool';
import { affinity } from '../../../dist/entries/diagnostics.js';
import { openManager } from '../../../dist/index.js';
import { removeCgroup } from './cgroup-removal.mjs';

const folder = mkdtempSync(join(tmpdir(), 'numalign-vm-'));
after(() => rmSync(folder, { recursive: true }));
const ROOT = '/numalign-pools';
const MOUNT = '/sys/fs/cgroup';
const JOBS = fileURLToPath(new URL('../../pools/jobs.cjs', import.meta.url));
const SIZE = 6;
let folders = 0;

// As another process sees it.
const maskOf = (tid) =>
  /^Cpus_allowed_list:\s*(\S+)$/m.exec(readFileSync(`/proc/${process.pid}/task/${tid}/status`, 'utf8'))[1];

/** A grant of six CPUs. */
async function acquire(test, level) {
  const manager = await openManager({
    stateDir: join(folder, `state-${folders++}`),
    cpuManagerReconcilePeriod: 0,
    enforcement: level,
    ...(level === 'members' ? {} : { cgroupRoot: ROOT }),
  });
  const grant = await manager.acquire({ cpu: SIZE, require: level });
  test.after(async () => {
    await grant.release();
    manager.close();
    if (existsSync(MOUNT + ROOT)) removeCgroup(MOUNT + ROOT);
  });
  return grant;
}

/** Each Worker's answer to `run`, by thread id. */
async function seenBy(run) {
  const seen = new Map();
  while (seen.size < SIZE)
    for (const each of await Promise.all(Array.from({ length: 2 * SIZE }, run))) seen.set(each.tid, each);
  return seen;
}

/** Each has one CPU of the grant: by its own report, from outside, and by the placement. */
function assertApart(grant, placement, seen) {
  assert.deepEqual(
    [...seen.values()].map(({ born }) => Number(born)).sort((a, b) => a - b),
    grant.cpus.toArray(),
  );
  for (const { tid, born, now } of seen.values()) assert.deepEqual([now, maskOf(tid)], [born, born]);
  assert.deepEqual(
    placement.workers.map(({ when, reason }) => [when, reason]),
    Array.from({ length: SIZE }, () => ['atBirth', null]),
  );
  for (const { tid, cpus } of placement.workers) assert.equal(seen.get(tid).born, String(cpus));
}

const PACKAGES = {
  piscina: (options) => {
    const pool = new Piscina({ filename: JOBS, ...options });
    return { run: () => pool.run('where'), end: () => pool.destroy() };
  },
  tinypool: (options) => {
    const pool = new Tinypool({ filename: JOBS, ...options });
    return { run: () => pool.run('where'), end: () => pool.destroy() };
  },
  workerpool: (options) => {
    const workerThreadOpts = { env: { ...process.env, NUMALIGN_TEST_POOL: 'workerpool' } };
    const pool = workerpool.pool(JOBS, { ...options, workerThreadOpts });
    return { run: () => pool.exec('where', []), end: () => pool.terminate(true) };
  },
};

describe('pools of Workers', () => {
  for (const [name, start] of Object.entries(PACKAGES)) {
    it(`of ${name} have one CPU of a partition each`, async (test) => {
      const grant = await acquire(test, 'partition');
      await assert.rejects(grant.placeWorkers(), { code: 'ERR_ENFORCEMENT' });
      grant.pin();
      const placement = await grant.placeWorkers({ oneToOne: true });
      const { run, end } = start(grant.poolOptions(name));
      test.after(end);
      assertApart(grant, placement, await seenBy(run));
    });
  }

  it('without a package have one CPU of a grant each, which this thread does not use', async (test) => {
    const grant = await acquire(test, 'members');
    const shared = String(affinity());
    const placement = await grant.placeWorkers({ oneToOne: true });
    const code = `require('node:worker_threads').parentPort.postMessage(require(${JSON.stringify(JOBS)}).where());
      setInterval(() => {}, 1000);`;
    const start = async () => {
      const worker = new Worker(code, { eval: true });
      test.after(() => worker.terminate());
      return { worker, ...(await once(worker, 'message'))[0] };
    };
    const seen = new Map(
      (await Promise.all(Array.from({ length: SIZE }, start))).map((each) => [each.tid, each]),
    );
    assertApart(grant, placement, seen);
    assert.equal(maskOf(process.pid), shared);
    const [{ worker, born }] = seen.values();
    await worker.terminate();
    assert.equal((await start()).born, born);
  });
});

// The reason in docs/pools.md why single threads do not go into the cgroup of a grant with cgroup
// v2.
it('the kernel moves no thread to a cgroup beside that of its process', (test) => {
  const root = join(MOUNT, 'numalign-threads');
  const [home, grant] = ['shared', 'grant'].map((name) => join(root, name));
  for (const each of [root, home, grant]) mkdirSync(each);
  test.after(() => removeCgroup(root));
  writeFileSync(join(root, 'cgroup.subtree_control'), '+cpuset');
  writeFileSync(join(home, 'cgroup.procs'), String(process.pid));
  const refused = { code: 'ENOTSUP' };
  const enter = (path) => writeFileSync(join(path, 'cgroup.threads'), String(process.pid));
  assert.throws(() => enter(grant), refused);
  assert.throws(() => writeFileSync(join(grant, 'cgroup.type'), 'threaded'), refused);
  // Into a cgroup below its own it does, and there it has no more CPUs than the process.
  const below = join(home, 'below');
  mkdirSync(below);
  writeFileSync(join(below, 'cgroup.type'), 'threaded');
  writeFileSync(join(home, 'cgroup.subtree_control'), '+cpuset');
  writeFileSync(join(home, 'cpuset.cpus'), '0-3');
  writeFileSync(join(below, 'cpuset.cpus'), '4-5');
  assert.equal(readFileSync(join(below, 'cpuset.cpus.effective'), 'utf8'), '0-3\n');
  writeFileSync(join(below, 'cpuset.cpus.partition'), 'root');
  assert.match(readFileSync(join(below, 'cpuset.cpus.partition'), 'utf8'), /^root invalid /);
});
