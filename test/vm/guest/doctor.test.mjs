// The report of `numalign doctor`, compared with the kernel, and the effect of its advice: at least
// 16 CPUs, cgroup v2, root. Run by node --test.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { affinity } from '../../../dist/entries/diagnostics.js';
import { CpuSet } from '../../../dist/index.js';
import { removeCgroup } from './cgroup-removal.mjs';
import { listOfCpu, read } from './kernel-view.mjs';

const MAIN = fileURLToPath(new URL('../../../packages/cli/dist/main.cjs', import.meta.url));
const MOUNT = '/sys/fs/cgroup';
const ROOT = '/numalign-test';
const UNPRIVILEGED = 65534;
const AS_USER = ['setpriv', `--reuid=${UNPRIVILEGED}`, `--regid=${UNPRIVILEGED}`, '--clear-groups', '--'];
const put = (path, text) => writeFileSync(path, `${text}\n`);

const folder = mkdtempSync(join(tmpdir(), 'numalign-doctor-'));
chmodSync(folder, 0o755);
// As a user types it.
const bin = join(folder, 'bin');
mkdirSync(bin);
writeFileSync(join(bin, 'numalign'), `#!/bin/sh\nexec ${process.execPath} ${MAIN} "$@"\n`, { mode: 0o755 });
process.env.PATH = `${bin}:${process.env.PATH}`;
let states = 0;
function newStateDir(owner = 0) {
  const stateDir = join(folder, `state-${states++}`);
  mkdirSync(stateDir, { mode: 0o700 });
  chownSync(stateDir, owner, owner);
  return stateDir;
}
after(() => rmSync(folder, { recursive: true }));

// Settings that tests change, and their original values.
const CHANGED = ['/proc/sys/kernel/numa_balancing', '/sys/devices/virtual/workqueue/cpumask'].map((path) => [
  path,
  read(path),
]);
const OWN = String(affinity());
after(() => {
  for (const [path, text] of CHANGED) put(path, text);
  // Before Linux 6.2 the end of a partition leaves all CPUs to every process, isolated ones too.
  // The next tests descend from this one's parent.
  spawnSync('taskset', ['-apc', OWN, String(process.ppid)]);
});

const WORK = '/sys/devices/virtual/workqueue/cpumask';
const made = [];
/** A cgroup below the root, with these values in its files. */
function makeCgroup(name, files = {}) {
  put(join(MOUNT, 'cgroup.subtree_control'), '+cpuset +cpu');
  const path = join(MOUNT, name);
  mkdirSync(path);
  made.push(path);
  for (const [file, text] of Object.entries(files)) put(join(path, file), text);
  return path;
}
afterEach(() => {
  for (const path of made.splice(0).reverse()) if (existsSync(path)) removeCgroup(path);
});

const inCgroup = (path) => ['sh', '-c', `echo $$ > ${path}/cgroup.procs && exec "$@"`, 'sh'];

function run(args, before = []) {
  const [program, ...rest] = [...before, process.execPath, MAIN, ...args];
  return spawnSync(program, rest, { encoding: 'utf8' });
}

function diagnose({ stateDir = newStateDir(), root = ROOT, before } = {}) {
  const more = root === undefined ? [] : ['--cgroup-root', root];
  const { status, stdout, stderr } = run(
    ['doctor', '--output', 'json', '--state-dir', stateDir, ...more],
    before,
  );
  assert.equal(stderr, '');
  const { healthy, findings } = JSON.parse(stdout);
  return { status, healthy, of: (check) => findings.find((finding) => finding.check === check) };
}

/** Follows the advice, command by command. */
function follow({ advice }, ...patterns) {
  const commands = [...advice.matchAll(/`([^`]*)`/g)].map(([, command]) => command);
  for (const pattern of patterns) {
    const command = commands.find((one) => pattern.test(one));
    assert.ok(command, `${pattern} in ${advice}`);
    const { status, stderr } = spawnSync('sh', ['-c', command], { encoding: 'utf8' });
    assert.equal(status, 0, `${command}: ${stderr}`);
  }
}

describe('the doctor', () => {
  it('reports the CPUs that the kernel was started to isolate', () => {
    const commandLine = readFileSync('/proc/cmdline', 'utf8');
    const argument = (name) =>
      CpuSet.parse(new RegExp(`(?:^| )${name}=([0-9,-]+)`).exec(commandLine)?.[1] ?? '');
    const [isolcpus, nohzFull] = [argument('isolcpus'), argument('nohz_full')];
    assert.ok(isolcpus.equals(nohzFull), 'this test knows no other machine');
    const { status, found } = diagnose().of('isolated-cpus');
    assert.equal(status, 'ok');
    assert.equal(
      found,
      isolcpus.isEmpty
        ? 'none: load is balanced over all CPUs'
        : `${isolcpus} (isolcpus or isolated partitions)`,
    );
  });

  it('reports how many CPUs a core has', () => {
    const { status, found } = diagnose().of('smt');
    const threads = listOfCpu(0, 'topology/thread_siblings_list').length;
    assert.equal(status, threads > 1 ? 'warning' : 'ok');
    if (threads > 1) assert.match(found, new RegExp(`^on, ${threads} CPUs per core`));
  });

  it('promises root a partition, and run gets it', () => {
    const stateDir = newStateDir();
    const { of } = diagnose({ stateDir });
    assert.match(of('cgroups').found, /^v2, \/sys\/fs\/cgroup\/numalign-test can be used$/);
    assert.deepEqual([of('delegation').status, of('enforcement').status], ['ok', 'ok']);
    assert.match(of('enforcement').found, /^partition/);
    made.push(join(MOUNT, ROOT));
    run(['configure', '--cgroup-root', ROOT, '--state-dir', stateDir]);
    const { status, stderr } = run([
      'run',
      '--supervise',
      '--cpus',
      '1',
      '--require',
      'partition',
      '--state-dir',
      stateDir,
      '--',
      'true',
    ]);
    assert.equal(status, 0, stderr);
  });

  it('promises an ordinary user no cgroups, until one is delegated to that user', () => {
    const before = diagnose({ stateDir: newStateDir(UNPRIVILEGED), before: AS_USER });
    assert.deepEqual([before.of('cgroups').status, before.of('delegation').status], ['warning', 'warning']);
    assert.match(before.of('enforcement').found, /^members: shared members of this user/);

    // Like systemd with Delegate=cpuset and DelegateSubgroup=main.
    const unit = makeCgroup('delegated-test');
    const main = join(unit, 'main');
    mkdirSync(main);
    for (const path of [unit, main]) {
      for (const file of ['', 'cgroup.procs', 'cgroup.subtree_control'])
        chownSync(join(path, file), UNPRIVILEGED, UNPRIVILEGED);
    }
    const inUnit = [...inCgroup(main), ...AS_USER];
    const stateDir = newStateDir(UNPRIVILEGED);
    const there = diagnose({ stateDir, before: inUnit });
    assert.equal(there.of('delegation').status, 'ok');
    assert.match(there.of('delegation').found, /below \/delegated-test$/);
    const root = /`--cgroup-root (\S+)`/.exec(there.of('cgroups').advice)[1];
    const advised = diagnose({ stateDir, root, before: inUnit });
    assert.equal(advised.of('cgroups').status, 'ok');
    const verdict = /^cpuset for shared members in cgroups below (\S+), members for others; no partition/;
    const [, rootPath] = verdict.exec(advised.of('enforcement').found);
    run(['configure', '--cgroup-root', root, '--state-dir', stateDir], inUnit);
    const levelOf = (before) => {
      const { status, stderr } = run(
        ['run', '--cpus', '1', '--output', 'json', '--state-dir', stateDir, '--', 'true'],
        before,
      );
      assert.equal(status, 0, stderr);
      return JSON.parse(stderr).enforcement;
    };
    assert.equal(levelOf(inUnit), 'members');
    // As in docs/recipes.md.
    const work = join(rootPath, 'work');
    const enter = [
      `mkdir -p ${work}`,
      `echo +cpuset > ${unit}/cgroup.subtree_control`,
      `echo $$ > ${work}/cgroup.procs`,
      `echo +cpuset > ${rootPath}/cgroup.subtree_control`,
      'exec "$@"',
    ];
    const inWork = [...inUnit, 'sh', '-ec', enter.join('\n'), 'sh'];
    const shared = run(['share', work, '--state-dir', stateDir], inWork);
    assert.equal(shared.status, 0, shared.stderr);
    assert.equal(levelOf(inWork), 'cpuset');
  });

  it('finds a partition of another program, until it is ended as advised', () => {
    makeCgroup('rt-test', { 'cpuset.cpus': '8-9', 'cpuset.cpus.partition': 'root' });
    const before = diagnose();
    assert.deepEqual([before.status, before.healthy], [1, false]);
    assert.match(before.of('cpusets').found, /\/rt-test \(a partition\) has 8-9$/);
    follow(before.of('cpusets'), /cpuset\.cpus\.partition/);
    assert.notEqual(diagnose().of('cpusets').status, 'problem');
  });

  it('accepts the partition that its own root is in, where run gets one', () => {
    const above = makeCgroup('part-test', { 'cpuset.cpus': '8-11', 'cpuset.cpus.partition': 'root' });
    const work = join(above, 'work');
    mkdirSync(work);
    const [before, stateDir, root] = [inCgroup(work), newStateDir(), '/part-test/numalign'];
    const configured = run(
      ['configure', '--managed', '8-11', '--cgroup-root', root, '--state-dir', stateDir],
      before,
    );
    assert.equal(configured.status, 0, configured.stderr);
    const { of } = diagnose({ stateDir, root, before });
    assert.equal(of('cpusets').status, 'ok', of('cpusets').found);
    assert.match(of('enforcement').found, /^partition/);
    const options = ['--supervise', '--cpus', '2', '--require', 'partition', '--state-dir', stateDir];
    const command = ['run', ...options, '--', 'true'];
    const granted = run(command, before);
    assert.equal(granted.status, 0, granted.stderr);
  });

  it('finds the CPU limits of a slice and of a quota', () => {
    makeCgroup('system.slice', { 'cpuset.cpus': '0-3' });
    assert.match(diagnose().of('cpusets').found, /\/system\.slice \(AllowedCPUs= of systemd\) has 0-3/);
    const { status, found } = diagnose({
      before: inCgroup(makeCgroup('quota-test', { 'cpu.max': '150000 100000' })),
    }).of('cpu-quota');
    // The start may have been throttled already.
    assert.ok(['warning', 'problem'].includes(status));
    assert.match(found, /^\/sys\/fs\/cgroup\/quota-test may use 1\.5 CPUs at a time/);
  });

  it('finds NUMA balancing and kernel work on granted CPUs, until its advice is followed', () => {
    const stateDir = newStateDir();
    put('/proc/sys/kernel/numa_balancing', 1);
    const before = diagnose({ stateDir });
    assert.equal(before.of('numa-balancing').status, 'warning');
    follow(before.of('numa-balancing'), /./);
    assert.equal(read('/proc/sys/kernel/numa_balancing'), '0');
    assert.equal(before.of('workqueues').status, 'warning');
    assert.match(before.of('workqueues').advice, /`numalign run --quiet workqueues`/);
    const mask = read(WORK);
    const options = ['--state-dir', stateDir, '--cpus', '1', '--quiet', 'workqueues'];
    const { stdout } = run(['run', ...options, '--', 'cat', WORK]);
    assert.notEqual(stdout.trim(), mask);
    assert.equal(read(WORK), mask);
    const after = diagnose({ stateDir });
    assert.equal(after.of('numa-balancing').status, 'ok');
  });
});
