// Processes that pin themselves in one line, and children of grants, on a machine of 16 CPUs with
// cgroup v2, as root. Also on isolated CPUs, if its kernel was started with isolcpus=12-15.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { discover } from '../../../dist/entries/topology.js';
import { CpuSet, openManager } from '../../../dist/index.js';
import { removeCgroup } from './cgroup-removal.mjs';

const CGROUP_ROOT = '/numalign-test';
const CHILD = fileURLToPath(new URL('../../children/child.mjs', import.meta.url));
const TENANT = fileURLToPath(new URL('../../children/tenant.mjs', import.meta.url));
const [PACKAGE, PRELOAD] = ['index', 'preload'].map((name) =>
  fileURLToPath(new URL(`../../../dist/${name}.js`, import.meta.url)),
);

const folder = mkdtempSync(join(tmpdir(), 'numalign-vm-'));
after(() => {
  rmSync(folder, { recursive: true });
  removeCgroup(join('/sys/fs/cgroup', CGROUP_ROOT));
});
let files = 0;
const newPath = (suffix) => join(folder, `${files++}${suffix}`);
const { isolated } = await discover();

/** Managers of one state on the machine's cgroups. */
const settings = () => ({ stateDir: newPath('-state'), cgroupRoot: CGROUP_ROOT, reservedSystemCPUs: '0' });
const allowedOf = (pid) =>
  /^Cpus_allowed_list:\s*(\S+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))[1];
const groupsOfGrants = () => {
  const below = readdirSync(join('/sys/fs/cgroup', CGROUP_ROOT), { withFileTypes: true });
  return below
    .filter((entry) => entry.isDirectory() && entry.name.startsWith('grant'))
    .map(({ name }) => name);
};

/** Runs a program to its end; returns the lines of JSON that it prints. */
async function run(program, env = {}) {
  const file = newPath('.mjs');
  writeFileSync(file, program);
  const child = spawn(process.execPath, [file], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let text = '';
  child.stdout.on('data', (data) => {
    text += data;
  });
  assert.deepEqual(await once(child, 'close'), [0, null]);
  return text.trim().split('\n').map(JSON.parse);
}

async function end(child) {
  const ended = once(child, 'exit');
  child.kill('SIGKILL');
  await ended;
}

describe('pin({ cpu })', () => {
  it('puts the whole process into a partition, which leaves nothing behind after a natural end', async () => {
    const manager = settings();
    const view = await openManager(manager);
    const pool = String(view.sharedPool());
    const [report] = await run(`
      import { pin } from ${JSON.stringify(PACKAGE)};
      import { readFileSync, readdirSync } from 'node:fs';
      const grant = await pin({ cpu: 4, manager: ${JSON.stringify(manager)} });
      const statusOf = (tid) => readFileSync('/proc/self/task/' + tid + '/status', 'utf8');
      const masks = readdirSync('/proc/self/task').map((tid) => /^Cpus_allowed_list:\\s*(.*)$/m.exec(statusOf(tid))[1]);
      const group = readFileSync('/proc/self/cgroup', 'utf8').trim();
      console.log(JSON.stringify({ cpus: String(grant.cpus), masks: [...new Set(masks)], group, level: grant.enforcement }));`);
    assert.deepEqual(report.masks, [report.cpus]);
    assert.equal(report.level, 'partition');
    assert.match(report.group, /^0::\/numalign-test\//);
    assert.deepEqual(view.grants(), []);
    assert.equal(String(view.sharedPool()), pool);
    assert.deepEqual(groupsOfGrants(), []);
    view.close();
  });

  it('is refused a second time, and only the first stays on record', async () => {
    const manager = JSON.stringify(settings());
    const [report] = await run(`
      import { openManager, pin } from ${JSON.stringify(PACKAGE)};
      const grant = await pin({ cpu: 2, manager: ${manager} });
      const error = await pin({ cpu: 2, manager: ${manager} }).catch(({ code }) => code);
      const other = await openManager(${manager});
      console.log(JSON.stringify([error, other.grants().map(({ uid }) => uid === grant.uid)]));
      other.close();`);
    assert.deepEqual(report, ['ERR_ALREADY_PINNED', [true]]);
  });

  it('puts each thread on one of several isolated CPUs', { skip: isolated.size < 2 && 'none' }, async () => {
    const manager = JSON.stringify({ ...settings(), cgroupRoot: null });
    const [report] = await run(`
      import { pin } from ${JSON.stringify(PACKAGE)};
      import { readFileSync } from 'node:fs';
      const grant = await pin({ cpu: 2, isolation: 'require', manager: ${manager} });
      const mask = /^Cpus_allowed_list:\\s*(.*)$/m.exec(readFileSync('/proc/self/status', 'utf8'))[1];
      console.log(JSON.stringify([String(grant.cpus), mask]));`);
    const [cpus, mask] = report.map((list) => CpuSet.parse(list));
    assert.equal(mask.size, 1);
    assert.ok(mask.isSubsetOf(cpus) && cpus.isSubsetOf(isolated));
  });
});

describe('grant.fork', () => {
  it('keeps children of several grants on separate CPUs from their first line of code', async () => {
    const manager = await openManager(settings());
    const grants = [];
    for (const cpu of [1, 2, 4]) grants.push(await manager.acquire({ cpu }));
    const children = grants.map((grant) => grant.fork(CHILD, [], { threadCounts: 'auto' }));
    const reports = await Promise.all(children.map(async (child) => (await once(child, 'message'))[0]));
    assert.deepEqual(
      reports.map(({ mask, env }) => [mask, env.NUMALIGN_CPUS, env.OMP_NUM_THREADS]),
      grants.map(({ cpus }) => [`${cpus}`, `${cpus}`, `${cpus.size}`]),
    );
    assert.equal(grants.map(({ cpus }) => cpus).reduce((all, cpus) => all.union(cpus)).size, 7);
    // From outside, and none on the CPUs of the others.
    assert.deepEqual(
      reports.map(({ pid }) => allowedOf(pid)),
      grants.map(({ cpus }) => String(cpus)),
    );
    await Promise.all(children.map(end));
    await Promise.all(grants.map((grant) => grant.release()));
    manager.close();
  });

  it('gives the grant to a child with the preload, which places its threads in its cgroup', async () => {
    const manager = await openManager(settings());
    const grant = await manager.acquire({ cpu: 2 });
    const child = grant.fork(TENANT, [], { execArgv: ['--import', PRELOAD] });
    const [[report]] = await Promise.all([once(child, 'message'), once(child, 'exit')]);
    assert.deepEqual([report.uid, report.mask], [grant.uid, String(grant.cpus)]);
    const { pin, placeThreads, worker, spawn: spawned, fork, release } = report.outcomes;
    const outcomes = [pin, placeThreads, worker, spawned, fork, release];
    assert.deepEqual(outcomes, ['done', 'done', 'done', 'done', 'done', 'ERR_OWNER_ALIVE']);
    assert.equal(grant.enforcement, 'partition');
    await grant.release();
    assert.deepEqual(groupsOfGrants(), []);
    manager.close();
  });
});

describe('node:cluster below numalign/preload', () => {
  it('runs each worker on its own CPUs from its first line, beside its primary', async () => {
    const manager = settings();
    const lines = await run(
      `import cluster from 'node:cluster';
       import { readFileSync } from 'node:fs';
       const mask = /^Cpus_allowed_list:\\s*(.*)$/m.exec(readFileSync('/proc/self/status', 'utf8'))[1];
       console.log(JSON.stringify(mask));
       const up = [];
       if (cluster.isPrimary) {
         // All of them at a time.
         cluster.on('message', (worker) => {
           if (up.push(worker) === 3) for (const each of up) each.send('end');
         });
         for (let i = 0; i < 3; i++) cluster.fork();
       } else {
         process.once('message', () => process.disconnect());
         process.send('up');
       }`,
      {
        NODE_OPTIONS: `--import ${PRELOAD}`,
        NUMALIGN_ACQUIRE: '{"cpu": 2}',
        NUMALIGN_MANAGER: JSON.stringify(manager),
      },
    );
    const masks = lines.map((list) => CpuSet.parse(list));
    assert.deepEqual(
      masks.map(({ size }) => size),
      [2, 2, 2, 2],
    );
    assert.equal(masks.reduce((all, mask) => all.union(mask)).size, 8);
    const view = await openManager(manager);
    assert.deepEqual(view.grants(), []);
    view.close();
  });
});
