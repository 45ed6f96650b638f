// The real cgroup v2 of a machine with 16 CPUs (0-15) on 4 NUMA nodes, its own root, and nothing
// else on it: a virtual machine.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { after, afterEach, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { openCpusetHierarchy } from '../../../dist-test/lib/cgroups/cpuset-hierarchy.js';
import { KERNEL_FILES } from '../../../dist-test/lib/cgroups/files/cgroup-files.js';
import { MadeGroupsInMemory } from '../../../dist-test/lib/cgroups/files/made-groups.js';
import { limitsOfProcess } from '../../../dist-test/lib/cgroups/limits.js';
import { CpuSet, NodeSet } from '../../../dist-test/lib/index.js';
import { removeCgroup } from './cgroup-removal.mjs';

const MOUNT = '/sys/fs/cgroup';
const ROOT = '/numalign-test';
const NONE = NodeSet.EMPTY;
const UNPRIVILEGED = 65534;
const cpus = (list) => CpuSet.parse(list);
const read = (folder, file) => readFileSync(join(folder, file), 'utf8').trim();
const put = (folder, file, text) => writeFileSync(join(folder, file), `${text}\n`);
const allowedOf = (pid) =>
  /^Cpus_allowed_list:\s*(\S+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))[1];

const children = new Set();
function idler() {
  const child = spawn('sleep', ['1000'], { stdio: 'ignore' });
  children.add(child);
  return child.pid;
}

afterEach(async () => {
  for (const child of children) {
    child.kill('SIGKILL');
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  }
  children.clear();
  for (const { name } of readdirSync(MOUNT, { withFileTypes: true }).filter((entry) => entry.isDirectory())) {
    if (/test|\.service$|\.slice$|^beside$/.test(name)) removeCgroup(join(MOUNT, name));
  }
});

/** Our root, not created yet, and a log of the writes. */
function ownRoot(path = ROOT) {
  const log = [];
  const logged = (step, line) => (file, text) => {
    step(file, text);
    log.push(line(file, text));
  };
  const tree = openCpusetHierarchy(path, new MadeGroupsInMemory(), {
    write: logged(KERNEL_FILES.write, (file, text) => `${file.slice(MOUNT.length)}=${text}`),
    makeFolder: logged(KERNEL_FILES.makeFolder, (file) => `mkdir ${file.slice(MOUNT.length)}`),
    removeFolder: logged(KERNEL_FILES.removeFolder, (file) => `rmdir ${file.slice(MOUNT.length)}`),
  });
  return { tree, log };
}

function madeRoot(list = '0-15') {
  const own = ownRoot();
  own.tree.ensureRoot(cpus(list), NONE);
  own.log.length = 0;
  return own;
}

function refusal(action) {
  try {
    action();
  } catch (error) {
    assert.equal(error.code, 'ERR_CGROUP', String(error));
    assert.ok(error.details.valid, error.message);
    return {
      errno: error.errnoName,
      reason: error.details.reason,
      message: error.message,
      text: error.details.text,
    };
  }
  throw new Error('no error came');
}

const assertRefused = (action, reason, errno) => {
  const error = refusal(action);
  assert.deepEqual([error.reason, error.errno], [reason, errno], error.message);
  return error;
};

describe('plain groups', () => {
  it('are inspected without a write', () => {
    const { tree, log } = ownRoot();
    assert.deepEqual([tree.version, tree.mount, tree.rootPath], [2, MOUNT, MOUNT + ROOT]);
    assert.ok(tree.canWrite());
    assert.deepEqual(tree.list(), []);
    assert.equal(tree.partition().kind, 'none');
    assert.deepEqual(log, []);
  });

  it('are created with the controller enabled above them, and then left alone', () => {
    const { tree, log } = ownRoot();
    tree.ensureRoot(cpus('0-15'), NONE);
    const group = tree.group('pod', 'a');
    group.create(cpus('4-5'), NodeSet.of(1));
    assert.deepEqual(log, [
      `mkdir ${ROOT}`,
      `${ROOT}/cpuset.cpus=0-15`,
      `${ROOT}/cgroup.subtree_control=+cpuset`,
      `mkdir ${ROOT}/pod`,
      `${ROOT}/pod/cpuset.mems=1`,
      `${ROOT}/pod/cpuset.cpus=4-5`,
      `${ROOT}/pod/cgroup.subtree_control=+cpuset`,
      `mkdir ${ROOT}/pod/a`,
      `${ROOT}/pod/a/cpuset.mems=1`,
      `${ROOT}/pod/a/cpuset.cpus=4-5`,
    ]);
    assert.equal(String(group.effectiveCpus()), '4-5');
    assert.equal(String(group.effectiveMems()), '1');
    log.length = 0;
    tree.ensureRoot(cpus('0-15'), NONE);
    group.create(cpus('4-5'), NodeSet.of(1));
    group.setCpus(cpus('4-5'));
    group.setMems(NodeSet.of(1), { migrate: true });
    assert.deepEqual(log, []);
    group.remove();
    tree.group('pod').remove();
    tree.group().remove();
    assert.ok(!tree.group().exists());
  });

  it('enable the controller at the top if it is off', () => {
    put(MOUNT, 'cgroup.subtree_control', '-cpuset');
    try {
      const { tree, log } = ownRoot();
      assert.ok(tree.canWrite());
      tree.ensureRoot(cpus('0-3'), NONE);
      assert.deepEqual(log.slice(0, 2), ['/cgroup.subtree_control=+cpuset', `mkdir ${ROOT}`]);
    } finally {
      put(MOUNT, 'cgroup.subtree_control', '+cpuset');
    }
  });

  it('give processes their CPUs at once, and return them to their former cgroups', () => {
    const { tree } = madeRoot();
    const group = tree.group('a');
    group.create(cpus('4-5'), NONE);
    const pid = idler();
    assert.equal(tree.folderOf(pid), MOUNT);
    group.attach(pid);
    assert.equal(tree.folderOf(pid, pid), group.path);
    assert.deepEqual([group.processes(), group.threads(), group.isPopulated()], [[pid], [pid], true]);
    assert.ok(tree.group().isPopulated());
    assert.equal(allowedOf(pid), '4-5');
    assertRefused(() => group.remove(), 'in-use', 'EBUSY');
    assertRefused(() => group.attachThread(pid), 'version');
    group.remove(MOUNT);
    assert.ok(!group.exists());
    assert.equal(tree.folderOf(pid), MOUNT);
    assert.equal(allowedOf(pid), '0-15');
  });

  it('shrink from the bottom and grow from the top', () => {
    const { tree, log } = madeRoot();
    const [pod, a, b] = [tree.group('pod'), tree.group('pod', 'a'), tree.group('pod', 'b')];
    a.create(cpus('4-5'), NONE);
    b.create(cpus('6-7'), NONE);
    assert.equal(String(pod.cpus()), '4-7');
    const pid = idler();
    a.attach(pid);
    log.length = 0;
    pod.setCpus(cpus('5-6'));
    assert.deepEqual(log, [
      `${ROOT}/pod/a/cpuset.cpus=5`,
      `${ROOT}/pod/b/cpuset.cpus=6`,
      `${ROOT}/pod/cpuset.cpus=5-6`,
    ]);
    assert.equal(allowedOf(pid), '5');
    log.length = 0;
    pod.setCpus(cpus('6,8'));
    assert.deepEqual(log, [
      `${ROOT}/pod/cpuset.cpus=5-6,8`,
      `${ROOT}/pod/a/cpuset.cpus=6,8`,
      `${ROOT}/pod/cpuset.cpus=6,8`,
    ]);
    assert.equal(allowedOf(pid), '6,8');
  });

  it('refuse CPUs that the parent cgroup lacks, which the kernel would accept in silence', () => {
    const { tree } = madeRoot('0-7');
    const group = tree.group('a');
    assert.match(
      assertRefused(() => group.create(cpus('6-9'), NONE), 'outside-parent').message,
      /did not get 8-9/,
    );
    assert.match(assertRefused(() => group.create(cpus('8-9'), NONE), 'outside-parent').message, /got 0-7/);
    assert.ok(!group.exists());
    group.create(cpus('6-7'), NONE);
    assertRefused(() => group.setCpus(cpus('7-8')), 'outside-parent');
    assert.equal(String(group.cpus()), '6-7');
    tree.group().setMems(NodeSet.of(0, 1));
    assertRefused(() => group.setMems(NodeSet.of(3)), 'outside-parent');
    assert.equal(String(group.mems()), '');
  });

  it('explain the kernel’s refusals in words', () => {
    const { tree } = madeRoot();
    const group = tree.group('a');
    group.create(cpus('4-5'), NONE);
    const pid = idler();
    assertRefused(() => tree.group().attach(pid), 'internal-processes');
    assertRefused(() => group.attach(2 ** 22 + 1), 'no-process', 'ESRCH');
    assertRefused(() => group.attach(0), 'no-process');
    assertRefused(() => tree.folderOf(2 ** 22 + 1), 'no-process');
    assertRefused(() => tree.group('none').attach(pid), 'missing', 'ENOENT');
    assertRefused(() => group.setCpus(CpuSet.of(60_000)), 'invalid-ids', 'ERANGE');
    assertRefused(() => group.setMems(NodeSet.of(9)), 'invalid-ids', 'EINVAL');
    assertRefused(() => group.setCpus(CpuSet.EMPTY), 'no-cpus');
    put(group.path, 'cgroup.type', 'threaded');
    assertRefused(() => group.processes(), 'threaded', 'ENOTSUP');
  });

  it('do not turn a cgroup with processes into a threaded one, as the kernel would', () => {
    const top = join(MOUNT, 'numalign-test-top');
    mkdirSync(top);
    const pid = idler();
    put(top, 'cgroup.procs', pid);
    const { tree, log } = ownRoot('/numalign-test-top/numalign');
    assert.equal(tree.canWrite(), false);
    const error = assertRefused(() => tree.ensureRoot(cpus('0-3'), NONE), 'internal-processes');
    assert.match(error.message, /it has processes/);
    assert.deepEqual(log, []);
    // The kernel would accept it.
    put(top, 'cgroup.subtree_control', '+cpuset');
    tree.ensureRoot(cpus('0-3'), NONE);
    assert.equal(read(tree.rootPath, 'cgroup.type'), 'domain invalid');
    assertRefused(() => tree.group().attach(pid), 'threaded', 'ENOTSUP');
  });

  it('take no processes in if there are cgroups below, which the kernel would make invalid', () => {
    const { tree } = madeRoot();
    const [pod, a] = [tree.group('pod'), tree.group('pod', 'a')];
    a.create(cpus('4'), NONE);
    tree.group('b').create(cpus('5'), NONE);
    const pid = idler();
    assertRefused(() => pod.attach(pid), 'internal-processes');
    tree.group('b').attach(pid);
    assertRefused(() => tree.group('b').remove(pod.path), 'internal-processes');
    assert.equal(read(a.path, 'cgroup.type'), 'domain');
    // The kernel would accept it.
    put(pod.path, 'cgroup.procs', pid);
    assert.equal(read(a.path, 'cgroup.type'), 'domain invalid');
  });

  it('are not removed if numalign did not create them', () => {
    const { tree, log } = madeRoot();
    tree.group('pod').create(cpus('4'), NONE);
    mkdirSync(join(tree.group('pod').path, 'theirs'));
    log.length = 0;
    assertRefused(() => tree.group('pod').remove(MOUNT), 'not-made');
    assert.deepEqual(log, []);
  });

  it('lose their quota if numalign created them, and report the tightest limits above', () => {
    const { tree, log } = ownRoot();
    mkdirSync(tree.rootPath);
    put(tree.rootPath, 'cpu.max', '400000 100000');
    put(tree.rootPath, 'memory.max', String(512 << 20));
    tree.ensureRoot(cpus('0-15'), NONE);
    assert.equal(read(tree.rootPath, 'cpu.max'), '400000 100000');
    const group = tree.group('a');
    group.create(cpus('4'), NONE);
    put(tree.rootPath, 'cgroup.subtree_control', '+cpu +memory');
    put(group.path, 'cpu.max', '50000 100000');
    const pid = idler();
    group.attach(pid);
    const limits = limitsOfProcess(pid);
    assert.deepEqual(
      { ...limits.cpuMax, throttled: undefined },
      { path: group.path, cpus: 0.5, quotaUs: 50_000, periodUs: 100_000, throttled: undefined },
    );
    assert.deepEqual(Object.keys(limits.cpuMax.throttled), ['nrThrottled', 'throttledUs']);
    assert.deepEqual(limits.memoryMax, { path: tree.rootPath, bytes: 512 << 20 });
    log.length = 0;
    group.create(cpus('4'), NONE);
    assert.deepEqual(log, [`${ROOT}/a/cpu.max=max`]);
    assert.deepEqual(limitsOfProcess(pid).cpuMax.cpus, 4);
  });
});

describe('partitions', () => {
  it('are created, grown, shrunk and ended with processes inside', () => {
    const { tree, log } = ownRoot();
    tree.setPartition('member', CpuSet.EMPTY);
    assert.deepEqual(log, []);
    tree.setPartition('root', cpus('4-7'));
    assert.deepEqual(log, [`mkdir ${ROOT}`, `${ROOT}/cpuset.cpus=4-7`, `${ROOT}/cpuset.cpus.partition=root`]);
    assert.deepEqual(tree.partition().valid, true);
    assert.equal(read(MOUNT, 'cpuset.cpus.effective'), '0-3,8-15');
    const group = tree.group('pod', 'a');
    group.create(cpus('4-5'), NONE);
    const pid = idler();
    group.attach(pid);
    assert.equal(allowedOf(pid), '4-5');
    log.length = 0;
    tree.setPartition('root', cpus('4-7'));
    assert.deepEqual(log, []);
    tree.setPartition('root', cpus('2-9'));
    assert.deepEqual([String(tree.partition().effective), allowedOf(pid)], ['2-9', '4-5']);
    tree.setPartition('root', cpus('5-7'));
    assert.deepEqual([String(tree.partition().effective), allowedOf(pid)], ['5-7', '5']);
    assert.equal(read(MOUNT, 'cpuset.cpus.effective'), '0-4,8-15');
    log.length = 0;
    tree.group('pod').remove(MOUNT);
    tree.setPartition('member', CpuSet.EMPTY);
    assert.deepEqual([tree.partition().kind, String(tree.partition().cpus)], ['member', '']);
    assert.equal(read(MOUNT, 'cpuset.cpus.effective'), '0-15');
    assert.equal(allowedOf(pid), '0-15');
    log.length = 0;
    tree.setPartition('member', CpuSet.EMPTY);
    assert.deepEqual(log, []);
  });

  it('move to other CPUs at once, together with the cgroups below', () => {
    const { tree } = ownRoot();
    tree.setPartition('root', cpus('4-5'));
    const group = tree.group('pod', 'a');
    group.create(cpus('4-5'), NONE);
    const pid = idler();
    group.attach(pid);
    tree.setPartition('root', cpus('10-11'));
    assert.deepEqual([String(group.cpus()), allowedOf(pid)], ['10-11', '10-11']);
    assert.equal(read(MOUNT, 'cpuset.cpus.effective'), '0-9,12-15');
  });

  it('let a process go to CPUs outside all of them', () => {
    const { tree } = ownRoot();
    tree.setPartition('root', cpus('4-7'));
    for (const leave of [(group, pid) => group.moveBack(pid, MOUNT), (group) => group.remove(MOUNT)]) {
      const group = tree.group('pod', 'a');
      group.create(cpus('4-5'), NONE);
      const pid = idler();
      group.attach(pid);
      leave(group, pid);
      assert.equal(allowedOf(pid), '0-3,8-15');
    }
  });

  it('keep out a process that is pinned to their CPUs: its mask is reset', () => {
    const { tree } = ownRoot();
    const pid = idler();
    spawnSync('taskset', ['-pc', '8', pid]);
    assert.equal(allowedOf(pid), '8');
    tree.setPartition('root', cpus('8-9'));
    assert.equal(allowedOf(pid), '0-7,10-15');
    tree.setPartition('root', cpus('9'));
    // Newer kernels remember the mask.
    assert.match(allowedOf(pid), /^(0-8,10-15|8)$/);
  });

  it('change their kind, and keep their CPUs when they end', () => {
    const { tree } = ownRoot();
    tree.setPartition('isolated', cpus('4-7'));
    assert.equal(tree.partition().text, 'isolated');
    tree.setPartition('root', cpus('4-6'));
    assert.equal(tree.partition().text, 'root');
    tree.setPartition('isolated', cpus('4-7'));
    assert.equal(tree.partition().text, 'isolated');
    tree.setPartition('member', cpus('0-15'));
    assert.deepEqual([tree.partition().text, String(tree.group().cpus())], ['member', '0-15']);
  });

  it('that the kernel rejects are reported with its answer, and nothing changes', () => {
    const { tree } = ownRoot();
    const error = assertRefused(() => tree.setPartition('root', cpus('0-15')), 'partition-invalid');
    assert.match(error.text, /^root invalid \(/);
    assert.match(error.message, /fewer CPUs/);
    assert.ok(!tree.group().exists());
    tree.setPartition('root', cpus('4-7'));
    assertRefused(() => tree.setPartition('root', cpus('0-15')), 'partition-invalid');
    assert.deepEqual([tree.partition().text, String(tree.partition().effective)], ['root', '4-7']);
    assertRefused(() => tree.setPartition('isolated', cpus('0-15')), 'partition-invalid');
    assert.deepEqual([tree.partition().text, String(tree.partition().effective)], ['root', '4-7']);
    assertRefused(() => tree.setPartition('root', CpuSet.EMPTY), 'no-cpus');
    assertRefused(() => tree.setPartition('bogus', cpus('4')), 'version');
    const beside = join(MOUNT, 'beside');
    mkdirSync(beside);
    put(beside, 'cpuset.cpus', '10-12');
    const overlap = assertRefused(() => tree.setPartition('root', cpus('4-10')), 'partition-invalid');
    assert.match(overlap.message, /10: .*beside has them too/);
    assert.equal(tree.partition().text, 'root');
  });

  it('of other owners stay valid', () => {
    const beside = join(MOUNT, 'beside');
    mkdirSync(beside);
    put(beside, 'cpuset.cpus', '10-12');
    put(beside, 'cpuset.cpus.partition', 'root');
    const { tree } = ownRoot();
    assert.match(
      assertRefused(() => tree.setPartition('root', cpus('8-11')), 'foreign-partition').message,
      /10-11.*beside/,
    );
    assertRefused(() => tree.ensureRoot(cpus('0-15'), NONE), 'foreign-partition');
    assert.equal(read(beside, 'cpuset.cpus.partition'), 'root');
    tree.ensureRoot(cpus('0-9,13-15'), NONE);
    assertRefused(() => tree.group('a').create(cpus('9-10'), NONE), 'outside-parent');
    assert.equal(read(beside, 'cpuset.cpus.partition'), 'root');
  });

  it('are ended even just after a process inside has ended', () => {
    const { tree } = ownRoot();
    for (let round = 0; round < 30; round++) {
      tree.setPartition('root', cpus('4-7'));
      const group = tree.group('a');
      group.create(cpus('4-5'), NONE);
      const pid = idler();
      group.attach(pid);
      process.kill(pid, 'SIGKILL');
      while (group.processes().length > 0);
      tree.setPartition('member', CpuSet.EMPTY);
      group.remove();
      assert.equal(tree.partition().kind, 'member');
      assert.equal(read(tree.rootPath, 'cpuset.cpus'), '');
    }
  });

  it('that another program made invalid are made valid again', () => {
    const { tree } = ownRoot();
    tree.setPartition('root', cpus('4-7'));
    const beside = join(MOUNT, 'beside');
    mkdirSync(beside);
    put(beside, 'cpuset.cpus', '7-8');
    assert.equal(tree.partition().valid, false);
    assertRefused(() => tree.setPartition('root', cpus('4-7')), 'partition-invalid');
    assert.equal(tree.partition().kind, 'root');
    rmdirSync(beside);
    assert.equal(tree.partition().valid, false);
    tree.setPartition('root', cpus('4-7'));
    assert.equal(tree.partition().text, 'root');
  });

  it('are nested, isolated, and may take all CPUs of the one above', () => {
    const { tree, log } = ownRoot();
    tree.setPartition('root', cpus('4-7'));
    const pod = tree.group('pod');
    pod.setPartition('isolated', cpus('6-7'));
    assert.deepEqual([pod.partition().text, String(tree.partition().effective)], ['isolated', '4-5']);
    const pid = idler();
    pod.attach(pid);
    assert.equal(allowedOf(pid), '6-7');
    pod.setPartition('isolated', cpus('4-7'));
    assert.deepEqual([pod.partition().text, String(tree.partition().effective)], ['isolated', '']);
    tree.setPartition('root', cpus('4-9'));
    pod.setPartition('isolated', cpus('4-9'));
    pod.setPartition('isolated', cpus('6-9'));
    tree.setPartition('root', cpus('6-9'));
    assert.deepEqual(
      [pod.partition().text, tree.partition().text, allowedOf(pid)],
      ['isolated', 'root', '6-9'],
    );
    log.length = 0;
    tree.setPartition('root', cpus('6-9'));
    pod.setPartition('isolated', cpus('6-9'));
    assert.deepEqual(log, []);
    assertRefused(() => tree.setPartition('member', CpuSet.EMPTY), 'nested-partition');
    pod.remove(MOUNT);
    tree.setPartition('member', CpuSet.EMPTY);
    assert.equal(allowedOf(pid), '0-15');
  });

  it('that cannot take the last CPU of the one above, on some kernels with processes further below, stay unchanged', () => {
    const { tree } = ownRoot();
    tree.setPartition('root', cpus('4-7'));
    const [pod, a] = [tree.group('pod'), tree.group('pod', 'a')];
    pod.setPartition('isolated', cpus('4-6'));
    a.create(cpus('4-6'), NONE);
    const pid = idler();
    a.attach(pid);
    try {
      pod.setPartition('isolated', cpus('4-7'));
      assert.equal(String(pod.partition().effective), '4-7');
    } catch (error) {
      assert.match(error.details.text, /^isolated invalid .*distribute/);
      assert.deepEqual(
        [pod.partition().text, String(pod.partition().effective), allowedOf(pid)],
        ['isolated', '4-6', '4-6'],
      );
    }
  });

  it('that another program made invalid are made valid again with their nested ones', () => {
    const { tree } = ownRoot();
    tree.setPartition('root', cpus('4-9'));
    const [pod, other] = [tree.group('pod'), tree.group('other')];
    pod.setPartition('isolated', cpus('6-7'));
    other.setPartition('isolated', cpus('4-5,8-9'));
    const pid = idler();
    pod.attach(pid);
    const beside = join(MOUNT, 'beside');
    mkdirSync(beside);
    put(beside, 'cpuset.cpus', '7-8');
    rmdirSync(beside);
    assert.ok(!tree.partition().valid);
    tree.setPartition('root', cpus('4-9'));
    for (const [group, list] of [
      [pod, '6-7'],
      [other, '4-5,8-9'],
    ]) {
      group.setPartition('isolated', cpus(list));
      assert.deepEqual([group.partition().text, String(group.partition().effective)], ['isolated', list]);
    }
    assert.deepEqual(
      [tree.partition().text, String(tree.partition().effective), allowedOf(pid)],
      ['root', '', '6-7'],
    );
  });

  it('below shrink with the one above, and stay valid beside new ones', () => {
    const { tree } = ownRoot();
    tree.setPartition('root', cpus('4-9'));
    const pod = tree.group('pod');
    pod.setPartition('isolated', cpus('6-9'));
    assertRefused(() => tree.group('other').create(cpus('5-6'), NONE), 'foreign-partition');
    assert.equal(pod.partition().text, 'isolated');
    assert.deepEqual(tree.list(), ['pod']);
    tree.setPartition('root', cpus('4-7'));
    assert.deepEqual(
      [pod.partition().text, String(pod.cpus()), String(tree.partition().effective)],
      ['isolated', '6-7', '4-5'],
    );
    tree.group('other').create(cpus('4-5'), NONE);
    assert.equal(pod.partition().text, 'isolated');
    assert.match(
      assertRefused(() => pod.setPartition('isolated', cpus('5-7')), 'partition-invalid').message,
      /other has them too/,
    );
    assert.deepEqual([pod.partition().text, String(pod.cpus())], ['isolated', '6-7']);
    assertRefused(() => pod.setPartition('isolated', cpus('6-8')), 'outside-parent');
    assert.deepEqual([pod.partition().text, String(pod.cpus())], ['isolated', '6-7']);
  });

  it('need a partition above', () => {
    const { tree } = madeRoot();
    assert.match(
      assertRefused(() => tree.group('a').setPartition('isolated', cpus('4')), 'partition-invalid').message,
      /make that a partition first/,
    );
    assert.deepEqual(tree.list(), []);
  });

  it('lose CPUs that go offline, and get them again when they are back', () => {
    const { tree, log } = ownRoot();
    tree.setPartition('root', cpus('4-7'));
    const online = '/sys/devices/system/cpu/cpu6/online';
    writeFileSync(online, '0');
    try {
      log.length = 0;
      assert.deepEqual([tree.partition().text, String(tree.partition().effective)], ['root', '4-5,7']);
      tree.setPartition('root', cpus('4-7'));
      assert.deepEqual(log, []);
    } finally {
      writeFileSync(online, '1');
    }
    assert.equal(String(tree.group().cpus()), '4-7');
  });

  it('stay if the controller is disabled above, once groups are in them', () => {
    const { tree } = ownRoot();
    tree.setPartition('root', cpus('4-7'));
    tree.group('a').create(cpus('4'), NONE);
    assert.throws(() => put(MOUNT, 'cgroup.subtree_control', '-cpuset'), { code: 'EBUSY' });
    assert.equal(tree.partition().text, 'root');
  });
});

describe('systemd units', () => {
  // One interpreter for all of them: it takes seconds to start here.
  const setAttributes = (pairs) => {
    const script =
      'import json, os, sys\nfor folder, name in json.loads(sys.argv[1]): os.setxattr(folder, name, b"1")';
    assert.equal(spawnSync('python3', ['-S', '-c', script, JSON.stringify(pairs)]).status, 0);
  };

  it('are left alone unless they are delegated, and then only the cgroups below them are ours', () => {
    const slice = join(MOUNT, 'system.slice');
    const unit = join(slice, 'agent.service');
    mkdirSync(unit, { recursive: true });
    const open = (path) => ownRoot(path.slice(MOUNT.length));
    for (const path of [slice, unit, join(unit, 'numalign'), join(slice, 'numalign')]) {
      assertRefused(() => open(path), 'systemd-unit');
    }
    const marked = ['user.delegate', 'trusted.delegate'].map((name) => [
      join(slice, `${name}.service`),
      name,
    ]);
    for (const [other] of marked) mkdirSync(other);
    setAttributes(marked);
    for (const [other] of marked) {
      assertRefused(() => open(other), 'systemd-unit');
      const { tree, log } = open(join(other, 'numalign'));
      // The slice does not hand the controller on; only systemd can change that.
      assert.equal(tree.canWrite(), false);
      assertRefused(() => tree.ensureRoot(cpus('0-3'), NONE), 'systemd-unit');
      assert.deepEqual(log, []);
    }
    put(slice, 'cgroup.subtree_control', '+cpuset');
    const { tree, log } = open(join(slice, 'user.delegate.service/numalign'));
    assert.ok(tree.canWrite());
    tree.ensureRoot(cpus('0-3'), NONE);
    assert.equal(log[0], '/system.slice/user.delegate.service/cgroup.subtree_control=+cpuset');
  });
});

describe('a subtree that is delegated to a user', () => {
  const top = join(MOUNT, 'numalign-test-delegated');
  const library = fileURLToPath(new URL('../../..', import.meta.url)).replace(/\/$/, '');

  function delegate() {
    mkdirSync(top);
    for (const file of ['.', 'cgroup.procs', 'cgroup.threads', 'cgroup.subtree_control'])
      chownSync(join(top, file), UNPRIVILEGED, UNPRIVILEGED);
  }

  /** Runs a script as that user, from inside the subtree or not. `report` gets the output. */
  function asUser(script, { inside }) {
    const prelude = `
      import { openCpusetHierarchy } from '${library}/dist-test/lib/cgroups/cpuset-hierarchy.js';
      import { MadeGroupsInMemory } from '${library}/dist-test/lib/cgroups/files/made-groups.js';
      import { CpuSet, NodeSet } from '${library}/dist-test/lib/index.js';
      import { spawn } from 'node:child_process';
      const said = {};
      const refusal = (action) => { try { action(); return 'none'; } catch (e) { return e.details ? [e.code, e.details.reason, e.errnoName ?? null, e.message] : String(e.stack); } };
      const open = (path) => openCpusetHierarchy(path, new MadeGroupsInMemory());
      const cpus = (list) => CpuSet.parse(list);
      const NONE = NodeSet.EMPTY;
    `;
    const path = '/tmp/as-user.mjs';
    writeFileSync(path, `${prelude}${script}\nconsole.log(JSON.stringify(said));`);
    const enter = inside ? `mkdir -p ${top}/agent && echo $$ > ${top}/agent/cgroup.procs && ` : '';
    const chown = inside ? `chown -R ${UNPRIVILEGED} ${top}/agent && ` : '';
    const result = spawnSync(
      'sh',
      [
        '-c',
        `${enter}${chown}exec setpriv --reuid ${UNPRIVILEGED} --regid ${UNPRIVILEGED} --clear-groups node ${path}`,
      ],
      { encoding: 'utf8' },
    );
    assert.equal(result.status, 0, result.stderr);
    return JSON.parse(result.stdout);
  }

  it("holds the user's own processes on their CPUs, without root", () => {
    delegate();
    const said = asUser(
      `const tree = open('/numalign-test-delegated/numalign');
      said.canWrite = tree.canWrite();
      tree.ensureRoot(cpus('0-7'), NONE);
      const group = tree.group('pod', 'a');
      group.create(cpus('2-3'), NONE);
      const before = tree.folderOf(process.pid);
      group.attach(process.pid);
      said.effective = String(group.effectiveCpus());
      said.allowed = /^Cpus_allowed_list:\\s*(\\S+)$/m.exec((await import('node:fs')).readFileSync('/proc/self/status', 'utf8'))[1];
      tree.group('pod').remove(before);
      tree.group().remove();
      said.removed = !tree.group().exists();`,
      { inside: true },
    );
    assert.deepEqual(said, { canWrite: true, effective: '2-3', allowed: '2-3', removed: true });
  });

  it('cannot take a process from outside, become a partition, or go above itself, and says so', () => {
    delegate();
    const pid = idler();
    const said = asUser(
      `const tree = open('/numalign-test-delegated/numalign');
      tree.ensureRoot(cpus('0-7'), NONE);
      said.partition = refusal(() => tree.setPartition('root', cpus('2-3')));
      const group = tree.group('a');
      group.create(cpus('2-3'), NONE);
      said.own = refusal(() => group.attach(process.pid));
      said.foreign = refusal(() => group.attach(${pid}));
      const top = open('/numalign-test-elsewhere');
      said.canWrite = top.canWrite();
      said.top = refusal(() => top.ensureRoot(cpus('0-7'), NONE));
      said.whole = refusal(() => open('/numalign-test-delegated').group().setCpus(cpus('0-1')));`,
      { inside: false },
    );
    assert.deepEqual(said.partition.slice(0, 3), ['ERR_CGROUP', 'not-delegated', null]);
    assert.match(said.partition[3], /only the owner of the cgroup above that/);
    assert.deepEqual(said.own.slice(0, 3), ['ERR_CGROUP', 'no-access', 'EACCES']);
    assert.deepEqual(said.foreign.slice(0, 3), ['ERR_CGROUP', 'no-access', 'EACCES']);
    assert.match(said.foreign[3], /comes from outside the cgroup delegated/);
    assert.equal(said.canWrite, false);
    assert.deepEqual(said.top.slice(0, 3), ['ERR_CGROUP', 'no-access', 'EACCES']);
    assert.deepEqual(said.whole.slice(0, 3), ['ERR_CGROUP', 'no-access', 'EACCES']);
    assert.ok(!existsSync(join(MOUNT, 'numalign-test-elsewhere')));
  });

  it('can have partitions if it is one itself', () => {
    delegate();
    put(top, 'cpuset.cpus', '4-7');
    put(top, 'cpuset.cpus.partition', 'root');
    const said = asUser(
      `const tree = open('/numalign-test-delegated/numalign');
      tree.setPartition('isolated', cpus('6-7'));
      said.text = tree.partition().text;
      tree.group('a').create(cpus('6'), NONE);
      tree.group('a').remove();
      tree.setPartition('member', CpuSet.EMPTY);
      tree.group().remove();
      said.removed = !tree.group().exists();`,
      { inside: true },
    );
    assert.deepEqual(said, { text: 'isolated', removed: true });
  });

  it('has a unit that runs as the user count as delegated', () => {
    const unit = join(MOUNT, 'agent-test.service');
    mkdirSync(unit);
    assertRefused(() => ownRoot('/agent-test.service/numalign'), 'systemd-unit');
    chownSync(unit, UNPRIVILEGED, UNPRIVILEGED);
    assert.equal(statSync(unit).uid, UNPRIVILEGED);
    assert.equal(ownRoot('/agent-test.service/numalign').tree.version, 2);
  });
});

after(() => assert.equal(read(MOUNT, 'cpuset.cpus.effective'), '0-15'));
