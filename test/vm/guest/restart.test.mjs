// The manager and owners of grants end and start again: which process keeps what, by the state and
// by the kernel. cgroup v2, root. Run by node --test.
import assert from 'node:assert/strict';
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename } from 'node:path';
import { after, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { affinity } from '../../../dist/entries/diagnostics.js';
import { openManager } from '../../../dist/index.js';
import * as kernel from './kernel-view.mjs';
import { newStateDir } from './state-folders.mjs';

const CLI = fileURLToPath(new URL('../../../packages/cli/dist/main.cjs', import.meta.url));
const OWN_CPUS = affinity();
/** A state folder with settings on record, for the processes that open it later. */
async function settings() {
  const stateDir = newStateDir();
  const options = { stateDir, cgroupRoot: `/numalign-${basename(stateDir)}`, reservedSystemCPUs: '0' };
  (await openManager(options)).close();
  return options;
}
const status = (stateDir) =>
  JSON.parse(execFileSync(process.execPath, [CLI, 'status', '--output', 'json', '--state-dir', stateDir]));

// Processes that a failed test has left: numalign run, and its programs.
const owners = [];
const pids = [];
after(() => {
  for (const pid of pids) if (existsSync(`/proc/${pid}/exe`)) process.kill(pid, 'SIGKILL');
  for (const owner of owners) owner.kill('SIGKILL');
});

async function until(condition) {
  for (let i = 0; i < 600; i++) {
    if (await condition()) return;
    await pause(100);
  }
  throw new Error(`has not come: ${condition}`);
}

/** `numalign run`, beside an idle program, once that is on its CPUs. */
async function startOwner({ stateDir }, name) {
  const options = [
    '--supervise',
    '--cpus',
    '2',
    '--name',
    name,
    '--policy',
    'single-numa-node',
    '--silent',
    '--state-dir',
    stateDir,
  ];
  const script = 'echo $$ $NUMALIGN_CPUS; exec sleep 100000';
  const owner = spawn(process.execPath, [CLI, 'run', ...options, '--', 'sh', '-c', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  owners.push(owner);
  const [line] = await once(owner.stdout, 'data');
  const [pid, list] = String(line).trim().split(' ');
  pids.push(Number(pid));
  const cpus = kernel.parseList(list);
  // With cgroup v2 it is moved into the cgroup of its grant after its start.
  await until(() => kernel.masks(pid).every((mask) => mask.join() === cpus.join()));
  return { owner, pid: Number(pid), cpus };
}

async function kill(child, pid = child.pid) {
  const exit = once(child, 'exit');
  process.kill(pid, 'SIGKILL');
  await exit;
}

test('grants outlive the manager that made them, and the next one knows them', async () => {
  const options = await settings();
  const first = await openManager(options);
  const grant = await first.acquire({ cpu: 2, memory: '64Mi', policy: 'single-numa-node' });
  grant.pin();
  const { uid, cpus } = grant;
  first.close();
  assert.deepEqual(affinity(), cpus);
  const next = await openManager(options);
  try {
    const [found, ...more] = next.grants();
    assert.deepEqual([more.length, found.uid, found.alive, String(found.cpus)], [0, uid, true, String(cpus)]);
    assert.ok(!next.sharedPool().intersects(cpus));
    for (const mask of kernel.masks()) assert.deepEqual(mask, cpus.toArray());
    // It is in the cgroup of its grant, and may still get others.
    const other = await next.acquire({ cpu: 2, policy: 'single-numa-node' });
    assert.ok(!other.cpus.intersects(cpus));
    await other.release();
    await next.grant(uid).release();
    assert.ok(!affinity().intersects(cpus) || affinity().isSubsetOf(next.sharedPool()));
  } finally {
    next.close();
  }
  assert.deepEqual(affinity(), OWN_CPUS);
});

test('an owner that is killed leaves its CPUs to its child, and its child to others', async () => {
  const options = await settings();
  const { owner, pid, cpus } = await startOwner(options, 'server');
  await kill(owner);
  const [found] = status(options.stateDir).grants;
  assert.deepEqual([found.name, found.alive], ['server', true]);
  assert.deepEqual(kernel.masks(pid), [cpus]);
  process.kill(pid, 'SIGKILL');
  await until(() => !existsSync(`/proc/${pid}/exe`));
  const manager = await openManager(options);
  try {
    assert.deepEqual(manager.grants(), []);
    assert.ok(cpus.every((cpu) => manager.sharedPool().has(cpu)));
  } finally {
    manager.close();
  }
});

test('an agent that starts again gets its old CPUs, though others came first', async () => {
  const options = await settings();
  const before = await startOwner(options, 'agent');
  const other = await startOwner(options, 'other');
  await kill(before.owner, before.pid);
  const again = await startOwner(options, 'agent');
  assert.deepEqual(again.cpus, before.cpus);
  assert.deepEqual(kernel.masks(again.pid), [before.cpus]);
  for (const { owner, pid } of [other, again]) await kill(owner, pid);
  assert.deepEqual(status(options.stateDir).grants, []);
});

test('a program that numalign run becomes is in the cgroup of its grant from its first instruction', async () => {
  const options = await settings();
  const line = ['run', '--cpus', '2', '--memory', '64Mi', '--policy', 'single-numa-node', '--silent'];
  const script =
    'cat /proc/self/cgroup /proc/self/status; grep heap /proc/self/numa_maps; echo end; exec sleep 100000';
  const run = spawn(
    process.execPath,
    [CLI, ...line, '--state-dir', options.stateDir, '--', 'sh', '-c', script],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  owners.push(run);
  let found = '';
  run.stdout.setEncoding('utf8').on('data', (part) => {
    found += part;
  });
  await until(() => found.endsWith('end\n'));
  const [grant] = status(options.stateDir).grants;
  assert.deepEqual(
    [grant.enforcement, grant.alive, grant.owner.pid, grant.owner.command],
    ['partition', true, run.pid, 'sh'],
  );
  assert.match(found, new RegExp(`^0::${options.cgroupRoot}/${grant.uid}%2Fmain$`, 'm'));
  const cpus = kernel.parseList(grant.cpus);
  assert.deepEqual(kernel.maskIn(found), cpus);
  for (const node of found.matchAll(/ heap .*? N(\d+)=/g)) assert.equal(node[1], grant.numaNodes);
  await until(() => readFileSync(`/proc/${run.pid}/comm`, 'utf8') === 'sleep\n');
  assert.deepEqual(kernel.masks(run.pid), [cpus]);
  await kill(run);
  // The shell that waits for its end gives the CPUs back.
  await until(() => !existsSync(grant.cgroup));
  const manager = await openManager(options);
  try {
    assert.deepEqual([manager.grants(), existsSync(grant.cgroup)], [[], false]);
    assert.ok(cpus.every((cpu) => manager.sharedPool().has(cpu)));
  } finally {
    manager.close();
  }
});

test('numalign run that cannot become its program leaves the cgroup of its grant, which is removed', async () => {
  const { stateDir, cgroupRoot } = await settings();
  const file = `${stateDir}.program`;
  // The error appears only when it is executed.
  writeFileSync(file, '#!/no/such/interpreter\n', { mode: 0o700 });
  const line = ['run', '--cpus', '2', '--state-dir', stateDir, '--', file];
  const { status: code, stderr } = spawnSync(process.execPath, [CLI, ...line], { encoding: 'utf8' });
  assert.match(stderr, /\(partition\), grant .*\nnumalign: .*: not found/);
  assert.deepEqual([code, status(stateDir).grants], [127, []]);
  assert.deepEqual(
    readdirSync(`/sys/fs/cgroup${cgroupRoot}`).filter((name) => name.includes('%2F')),
    [],
  );
});
