// Levels of enforcement on the real cgroup v2 of a machine with 16 CPUs (0-15) on 4 NUMA nodes and
// nothing else on it: a virtual machine, as root. One part needs a kernel that was started with
// isolcpus=12-15. Run by node --test.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { release, tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, describe, it } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { affinity } from '../../../dist/entries/diagnostics.js';
import { CpuSet } from '../../../dist/index.js';
import { Actor } from './actors.mjs';
import { removeCgroup } from './cgroup-removal.mjs';

const MOUNT = '/sys/fs/cgroup';
const ROOT = '/numalign';
const FOLDER = MOUNT + ROOT;
const UNPRIVILEGED = 65534;
const PACKAGE = fileURLToPath(new URL('../../..', import.meta.url));
const ISOLATED = CpuSet.parse(
  /(?:^| )isolcpus=([0-9,-]+)/.exec(readFileSync('/proc/cmdline', 'utf8'))?.[1] ?? '',
);
const ALL = CpuSet.parse('0-15');
// The CPUs of every process from boot on: not those of isolcpus=.
const OWN = affinity();

// Before Linux 6.2 a process that moves to another cpuset gets all of it.
const [MAJOR, MINOR] = release().split('.').map(Number);
const KEEPS_MASKS = MAJOR > 6 || (MAJOR === 6 && MINOR >= 2);

// The CPUs of processes that are no members, after a partition.
const LEFT_ALONE = String(KEEPS_MASKS ? OWN : ALL);

const cpus = (list) => CpuSet.parse(list);
const read = (...path) => readFileSync(join(...path), 'utf8').trim();
const put = (folder, file, text) => writeFileSync(join(folder, file), `${text}\n`);
const statusOf = (pid, field, tid = pid) =>
  new RegExp(`^${field}:\\s*(\\S+)$`, 'm').exec(read(`/proc/${pid}/task/${tid}/status`))[1];
const maskOf = (pid, tid) => statusOf(pid, 'Cpus_allowed_list', tid);
const cgroupOf = (pid) => /^0::(.*)$/m.exec(read(`/proc/${pid}/cgroup`))[1];
const threadsOf = (pid) => readdirSync(`/proc/${pid}/task`).map(Number);
const partition = (folder = FOLDER) =>
  existsSync(folder)
    ? [
        read(folder, 'cpuset.cpus.partition'),
        read(folder, 'cpuset.cpus'),
        read(folder, 'cpuset.cpus.effective'),
      ]
    : ['member', '', ''];
const taskset = (list, pid) => assert.equal(spawnSync('taskset', ['-apc', list, String(pid)]).status, 0);

const folder = mkdtempSync(join(tmpdir(), 'numalign-vm-'));
chmodSync(folder, 0o755);
after(() => rmSync(folder, { recursive: true }));
let folders = 0;
/** A state folder for one test, with the cgroups of the whole machine. */
const own = (options = {}) => ({
  stateDir: join(folder, `state-${folders++}`),
  cgroupRoot: ROOT,
  ...options,
});

// Before Linux 6.2 a partition that comes or goes gives this process all CPUs, and its children
// inherit them.
const takeOwnMask = () => taskset(String(OWN), process.pid);

const children = new Set();
function idler(list = undefined) {
  takeOwnMask();
  const child = spawn('sleep', ['1000'], { stdio: 'ignore' });
  children.add(child);
  if (list) taskset(list, child.pid);
  return child.pid;
}

class OwnActor extends Actor {
  constructor(options) {
    takeOwnMask();
    super(options);
    children.add(this.process);
  }
}

/** An actor with an open manager. */
async function opened(options, forkOptions) {
  const actor = new OwnActor(forkOptions);
  await actor.open(options);
  return actor;
}

afterEach(async () => {
  for (const child of children) {
    child.kill('SIGKILL');
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  }
  children.clear();
  for (const name of readdirSync(MOUNT))
    if (/^(numalign|beside|delegated)/.test(name)) removeCgroup(join(MOUNT, name));
});

/** Threads of other programs that the kernel lets run on some of these CPUs. */
function intruders(list, ...holders) {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && !holders.includes(Number(name)))
    .flatMap((pid) => {
      try {
        // Threads of the kernel have no program.
        readlinkSync(`/proc/${pid}/exe`);
        return threadsOf(pid)
          .filter((tid) => cpus(maskOf(pid, tid)).intersects(cpus(list)))
          .map((tid) => `${pid}/${tid} on ${maskOf(pid, tid)}`);
      } catch {
        return [];
      }
    });
}

const assertAlone = (list, ...holders) => assert.deepEqual(intruders(list, ...holders), []);
const assertPartition = (list, kind = 'root') => assert.deepEqual(partition(), [kind, list, list]);
function assertNoPartition() {
  const [kind, list] = partition();
  assert.deepEqual([kind, list], ['member', '']);
  assert.equal(read(MOUNT, 'cpuset.cpus.effective'), '0-15');
}
const assertMask = (pid, list) => {
  for (const tid of threadsOf(pid)) assert.equal(maskOf(pid, tid), list, `thread ${tid} of ${pid}`);
};

for (const [what, options] of [
  ['a state folder of its own', () => own()],
  ["the machine's folder", () => ({})],
]) {
  describe(`by default, with ${what}`, () => {
    it('a grant is a partition that the kernel keeps all other processes off', async () => {
      const [free, pinned, partly] = [idler(), idler('0-3'), idler('2-9')];
      const actor = await opened(options());
      const { cpus: list, enforcement, warnings, flags } = await actor.acquire({ cpu: 4 });
      assert.deepEqual([enforcement, warnings, flags], ['partition', [], []]);
      assertPartition(list);
      assertAlone(list);
      for (const pid of [free, pinned, partly]) assert.ok(!cpus(maskOf(pid)).isEmpty);

      const before = cgroupOf(actor.pid);
      const pinnedResult = await actor.grant('pin');
      assert.equal(pinnedResult.guaranteed, true);
      assert.deepEqual(pinnedResult.unmovable, []);
      assertMask(actor.pid, list);
      assert.match(cgroupOf(actor.pid), /^\/numalign\//);
      assertAlone(list, actor.pid);
      assert.equal(pinnedResult.memory.applied, true, JSON.stringify(pinnedResult.memory));

      const undone = await actor.grant('unpin');
      assert.deepEqual(undone.unmovable, []);
      assert.equal(cgroupOf(actor.pid), before);
      assertMask(actor.pid, String(OWN.difference(cpus(list))));
      assertAlone(list);
      assertPartition(list);

      await actor.grant('release');
      assertNoPartition();
      assertMask(actor.pid, String(OWN));
      assert.equal(maskOf(free), LEFT_ALONE);
      assert.deepEqual(
        readdirSync(FOLDER, { withFileTypes: true }).filter((entry) => entry.isDirectory()),
        [],
      );
    });
  });
}

describe('a partition', () => {
  it('holds the grants of several processes, and shrinks as they end', async () => {
    const options = own();
    const [a, b] = [await opened(options), await opened(options)];
    const first = (await a.acquire({ cpu: 2 })).cpus;
    const second = (await b.acquire({ cpu: 4 })).cpus;
    const third = (await a.acquire({ cpu: 2 }, 'more')).cpus;
    assertPartition(String(cpus(first).union(cpus(second)).union(cpus(third))));
    await a.grant('pin');
    await b.grant('pin');
    assertMask(a.pid, first);
    assertMask(b.pid, second);
    assertAlone(third);
    await a.grant('release');
    assertPartition(String(cpus(second).union(cpus(third))));
    assertAlone(second, b.pid);
    assertMask(b.pid, second);
    await b.grant('release');
    assertPartition(third);
    await a.grant('release', undefined, 'more');
    assertNoPartition();
    assertMask(a.pid, String(OWN));
    assertMask(b.pid, String(OWN));
  });

  it('gives a process back its own mask when it is unpinned, and when the grant ends', async () => {
    const actor = await opened(own());
    const { cpus: list } = await actor.acquire({ cpu: 2 });
    taskset('8-11', actor.pid);
    await actor.grant('pin');
    assertMask(actor.pid, list);
    await actor.grant('unpin');
    assertMask(actor.pid, '8-11');
    await actor.grant('pin');
    await actor.grant('release');
    assertMask(actor.pid, '8-11');
  });

  it('follows a grant that grows and shrinks, and so do its threads', async () => {
    const actor = await opened(own());
    const before = (await actor.acquire({ cpu: 2 })).cpus;
    await actor.grant('pin');
    for (const cpu of [6, 2, 4]) {
      const result = await actor.grant('resize', { cpu, noticeMs: 0 });
      const now = await actor.get('cpus');
      assert.equal(cpus(now).size, cpu);
      assert.deepEqual(result.unmovable, []);
      assertPartition(now);
      assertMask(actor.pid, now);
      assertAlone(now, actor.pid);
    }
    assert.ok(cpus(await actor.get('cpus')).intersects(cpus(before)));
    await actor.grant('release');
    assertNoPartition();
    assertMask(actor.pid, String(OWN));
  });

  it('stays as it is when a grant goes to another process', async () => {
    const options = own();
    const [a, b] = [await opened(options), await opened(options)];
    const { cpus: list, uid } = await a.acquire({ cpu: 2 });
    await a.grant('pin');
    const token = await a.do(async (_, mine) => {
      mine.transfer = await mine.grants.a.transfer();
      return mine.transfer.token;
    });
    const taken = await b.do(async (_, mine, given) => {
      mine.grants.a = await mine.manager.takeOver(given);
      return mine.grants.a;
    }, token);
    assert.deepEqual([taken.uid, taken.enforcement], [uid, 'partition']);
    assert.equal(await a.do((_, mine) => mine.transfer.accepted), true);
    assertPartition(list);
    assertAlone(list);
    assert.equal(cgroupOf(a.pid), '/');
    await b.grant('pin');
    assertMask(b.pid, list);
    assertAlone(list, b.pid);
    await b.grant('release');
    assertNoPartition();
  });

  it('is ended by the next opener after the death of the owner of the last grant', async () => {
    const options = own();
    for (const point of ['acquired', 'pinned', 'spawned', 'unpinned']) {
      const actor = await opened(options);
      const { cpus: list } = await actor.acquire({ cpu: 2 });
      if (point !== 'acquired') await actor.grant('pin');
      if (point === 'unpinned') await actor.grant('unpin');
      let child;
      if (point === 'spawned')
        child = await actor.do((_, mine) => mine.grants.a.spawn('sleep', ['1000']).pid);
      await actor.kill();
      assertPartition(list);
      assertAlone(list, child);
      const next = await opened(options);
      if (child) {
        // The grant lives on with the child.
        assertPartition(list);
        assertMask(child, list);
        process.kill(child, 'SIGKILL');
        while (existsSync(`/proc/${child}/exe`)) await pause(5);
        await next.do((_, mine) => mine.manager.acquire({ cpu: 1 }).then((grant) => grant.release()));
      }
      assertNoPartition();
      await next.kill();
    }
  });

  it('is made to match the record by the next opener, wherever a killed process stopped', async () => {
    const options = own();
    const keeper = await opened(options);
    const kept = (await keeper.acquire({ cpu: 2 })).cpus;
    for (let ms = 0; ms < 40; ms += 10) {
      const actor = await opened(options);
      actor.ask(async (_, mine) => {
        for (;;) {
          const grant = await mine.manager.acquire({ cpu: 2 });
          grant.pin();
          await grant.resize({ cpu: 4, noticeMs: 0 });
          await grant.release();
        }
      });
      await pause(100 + ms);
      await actor.kill();
      const next = await opened(options);
      assertPartition(kept);
      assert.equal(read(MOUNT, 'cpuset.cpus.effective'), String(ALL.difference(cpus(kept))));
      await next.kill();
    }
    await keeper.grant('release');
    assertNoPartition();
  });

  it('is refused if a cgroup beside it has the CPUs', async () => {
    mkdirSync(join(MOUNT, 'beside'));
    put(join(MOUNT, 'beside'), 'cpuset.cpus', '0-15');
    const actor = await opened(own());
    const free = idler();
    const masks = [maskOf(actor.pid), maskOf(free)];
    const error = await actor.refused(async (_, mine) => {
      await mine.manager.acquire({ cpu: 2, require: 'partition' });
    });
    assert.equal(error.code, 'ERR_ENFORCEMENT');
    assert.match(error.message, /^partition is required, but only members is possible here: .*beside/);
    assert.deepEqual([maskOf(actor.pid), maskOf(free)], masks);
    assertNoPartition();
    assert.deepEqual(await actor.do((_, mine) => mine.manager.grants()), []);

    const grant = await actor.acquire({ cpu: 2 });
    assert.equal(grant.enforcement, 'members');
    assert.deepEqual(
      grant.warnings.map(({ code, enforcement }) => [code, enforcement]),
      [
        ['ENFORCEMENT_SHORTFALL', 'members'],
        ['ENFORCEMENT_SHORTFALL', 'members'],
      ],
    );
    assert.match(grant.warnings[0].message, /beside/);
    assert.match(grant.warnings[1].message, /only their masks keep them off/);
    assertMask(actor.pid, String(OWN.difference(cpus(grant.cpus))));
    await actor.grant('pin');
    assertMask(actor.pid, grant.cpus);
    await actor.grant('release');
    assertMask(actor.pid, String(OWN));
    assertNoPartition();
  });

  it('stays unchanged beside a grant that the kernel does not let into it', async () => {
    const options = own();
    const actor = await opened(options);
    const first = (await actor.acquire({ cpu: 2 })).cpus;
    mkdirSync(join(MOUNT, 'beside'));
    put(join(MOUNT, 'beside'), 'cpuset.cpus', String(ALL.difference(cpus(first))));
    const second = await actor.acquire({ cpu: 2 }, 'more');
    assert.equal(second.enforcement, 'members');
    assertPartition(first);
    assertMask(actor.pid, String(OWN.difference(cpus(first)).difference(cpus(second.cpus))));
    rmdirSync(join(MOUNT, 'beside'));
    const third = await actor.acquire({ cpu: 2 }, 'third');
    assert.equal(third.enforcement, 'partition');
    assertPartition(String(cpus(first).union(cpus(third.cpus))));
    for (const name of ['a', 'more', 'third']) await actor.grant('release', undefined, name);
    assertNoPartition();
    assertMask(actor.pid, String(OWN));
  });
});

describe('an isolated grant', () => {
  it('is a partition within the partition, without load balancing and with one thread per CPU', async () => {
    const actor = await opened(own());
    const pool = await actor.do((_, mine) => mine.manager.settings().isolatedCPUs);
    const ordinary = (await actor.acquire({ cpu: 2 })).cpus;
    const {
      cpus: list,
      enforcement,
      isIsolated,
      flags,
    } = await actor.acquire({ cpu: 4, require: 'isolated' }, 'b');
    assert.deepEqual([enforcement, isIsolated, flags], ['isolated', true, []]);
    const both = String(cpus(ordinary).union(cpus(list)));
    assert.deepEqual(partition(), ['root', both, ordinary]);
    const [group] = readdirSync(FOLDER, { withFileTypes: true }).filter((entry) => entry.isDirectory());
    assert.deepEqual(partition(join(FOLDER, group.name)), ['isolated', list, list]);
    assertAlone(list);
    // CPUs that a grant isolates are in no pool of isolated CPUs.
    assert.deepEqual(await actor.do((_, mine) => mine.manager.settings().isolatedCPUs), pool);
    assert.equal(await actor.get('isIsolated'), ISOLATED.intersects(cpus(ordinary)));
    assert.deepEqual(await actor.grant('flags', undefined, 'b'), []);

    const refused = await actor.refused((_, mine) => mine.grants.b.pin());
    assert.equal(refused.code, 'ERR_ISOLATED_NEEDS_PLACEMENT');
    await actor.grant('placeThreads', {}, 'b');
    const third = await actor.acquire({ cpu: 1 }, 'c');
    assert.equal(third.enforcement, 'partition');
    await actor.grant('release', undefined, 'c');
    for (const tid of threadsOf(actor.pid)) {
      const mask = cpus(maskOf(actor.pid, tid));
      assert.ok(mask.size === 1 && mask.isSubsetOf(cpus(list)), `thread ${tid} on ${mask}`);
    }
    await actor.grant('resize', { cpu: 6, noticeMs: 0 }, 'b');
    const larger = await actor.get('cpus', 'b');
    assert.ok(cpus(list).isSubsetOf(cpus(larger)));
    assert.deepEqual(partition(join(FOLDER, group.name)), ['isolated', larger, larger]);
    await actor.grant('resize', { cpu: 2, noticeMs: 0 }, 'b');
    const smaller = await actor.get('cpus', 'b');
    assert.deepEqual(partition(join(FOLDER, group.name)), ['isolated', smaller, smaller]);
    assertAlone(smaller, actor.pid);
    // The grant does not use strict memory.
    assert.equal(readFileSync(join(FOLDER, group.name, 'cpuset.mems.effective'), 'utf8').trim(), '0-3');
    await actor.grant('release', undefined, 'b');
    assertPartition(ordinary);
    await actor.grant('release');
    assertNoPartition();
    assertMask(actor.pid, String(OWN));
  });

  it('can be the only one, and is ended by the next opener', async () => {
    const options = own();
    const actor = await opened(options);
    const { cpus: list, enforcement } = await actor.acquire({ cpu: 2, require: 'isolated' });
    assert.equal(enforcement, 'isolated');
    assert.deepEqual(partition().slice(0, 2), ['root', list]);
    await actor.grant('placeThreads', {});
    await actor.kill();
    const next = await opened(options);
    assertNoPartition();
    const again = await next.acquire({ cpu: OWN.size - 1 });
    assert.equal(again.enforcement, 'partition');
  });
});

describe('masks', () => {
  it('are the only means at the level members', async () => {
    const actor = await opened(own());
    const [free, member] = [idler(), idler('0-7')];
    await actor.do((_, mine, pid) => mine.manager.addSharedMember({ pid }), member);
    const { cpus: list, enforcement, warnings } = await actor.acquire({ cpu: 2, enforcement: 'members' });
    assert.deepEqual([enforcement, warnings], ['members', []]);
    assertNoPartition();
    const rest = OWN.difference(cpus(list));
    assertMask(actor.pid, String(rest));
    assert.equal(maskOf(member), String(rest.intersection(cpus('0-7'))));
    assert.equal(maskOf(free), String(OWN));
    const result = await actor.grant('pin', { threads: 'current' });
    assert.deepEqual(result.unmovable, []);
    assert.equal(maskOf(actor.pid), list);
    await actor.grant('release');
    assertMask(actor.pid, String(OWN));
    assert.equal(maskOf(member), '0-7');
  });

  it('keep threads on their grant while partitions of other processes come and go', async () => {
    const options = own();
    const [owner, other] = [await opened(options), await opened(options)];
    const { cpus: list } = await owner.acquire({ cpu: 2, enforcement: 'members' });
    await owner.grant('pin');
    // It cannot put itself back.
    process.kill(owner.pid, 'SIGSTOP');
    await other.acquire({ cpu: 2 });
    assertMask(owner.pid, list);
    await other.grant('release');
    assertMask(owner.pid, list);
    process.kill(owner.pid, 'SIGCONT');
  });

  it('of members are restored after a partition came, grew, shrank and went', async () => {
    const options = own();
    const actor = await opened(options);
    const member = idler('0-7');
    await actor.do((_, mine, pid) => mine.manager.addSharedMember({ pid }), member);
    const stays = (list) => String(cpus('0-7').difference(cpus(list)));
    const first = (await actor.acquire({ cpu: 2 })).cpus;
    assert.equal(maskOf(member), stays(first));
    const second = (await actor.acquire({ cpu: 2 }, 'more')).cpus;
    assert.equal(maskOf(member), stays(String(cpus(first).union(cpus(second)))));
    await actor.grant('release');
    assert.equal(maskOf(member), stays(second));
    // Its own choice has changed by now.
    taskset('4-5,12', member);
    await actor.grant('release', undefined, 'more');
    assert.equal(maskOf(member), '4-5,12');
    assertMask(actor.pid, String(OWN));
  });
});

describe('strict memory', () => {
  const memsOf = (pid) => statusOf(pid, 'Mems_allowed_list');

  it('is on the nodes of the grant for all processes in its cgroup, until it is unpinned', async () => {
    const actor = await opened(own());
    await actor.acquire({ cpu: 4 });
    const nodes = await actor.get('memoryNodes');
    const { memory } = await actor.grant('pin', { memory: 'strict' });
    assert.deepEqual([memory.mode, memory.nodes, memory.applied], ['bind', nodes, true]);
    for (const tid of threadsOf(actor.pid))
      assert.equal(statusOf(actor.pid, 'Mems_allowed_list', tid), nodes);
    await actor.grant('resize', { cpu: 6, noticeMs: 0 });
    assert.notEqual(await actor.get('memoryNodes'), nodes);
    assert.equal(memsOf(actor.pid), await actor.get('memoryNodes'));
    await actor.grant('unpin');
    assert.equal(memsOf(actor.pid), '0-3');
    await actor.grant('pin');
    assert.equal(memsOf(actor.pid), '0-3');
    await actor.grant('release');
    const masked = await actor.acquire({ cpu: 2, enforcement: 'members' });
    assert.equal(masked.enforcement, 'members');
    const error = await actor.refused((_, mine) => mine.grants.a.pin({ memory: 'strict' }));
    assert.equal(error.code, 'ERR_ENFORCEMENT');
    assert.equal(cgroupOf(actor.pid), '/');
  });

  it('follows the nodes of the booked memory, or those of the CPUs once it is given back', async () => {
    const actor = await opened(own());
    await actor.acquire({ cpu: 4 });
    const nodes = await actor.get('memoryNodes');
    await actor.grant('pin', { memory: 'strict' });
    for (const memory of ['64Mi', 0]) {
      await actor.grant('resize', { memory, noticeMs: 0 });
      assert.equal((await actor.get('memoryEnforcement')).length, memory === 0 ? 0 : 1);
      assert.equal(await actor.get('memoryNodes'), nodes);
      assert.equal(memsOf(actor.pid), nodes);
    }
    await actor.grant('release');
    assert.equal(memsOf(actor.pid), '0-3');
  });
});

describe('threads and children', () => {
  it('are started in the cgroup of a partition only from within', async () => {
    const actor = await opened(own());
    const { cpus: list } = await actor.acquire({ cpu: 2 });
    const outside = [
      (_, mine) => mine.grants.a.pin({ threads: 'current' }),
      (_, mine) => mine.grants.a.worker('setInterval(() => {}, 1000)', { eval: true }),
      (_, mine) => mine.grants.a.prewarmPool(),
    ];
    for (const action of outside) {
      const error = await actor.refused(action);
      assert.equal(error.code, 'ERR_ENFORCEMENT', error.message);
      assert.match(error.message, /pin the process first/);
    }
    assertAlone(list);
    await actor.grant('pin');
    await actor.grant('pin', { threads: 'current' });
    const pool = await actor.grant('prewarmPool');
    assert.deepEqual([pool.unmovable, pool.guaranteed], [[], true]);
    const answered = await actor.do(async (_, mine) => {
      const code =
        "const { parentPort } = require('node:worker_threads'); parentPort.postMessage(1); setInterval(() => {}, 1000)";
      const worker = mine.grants.a.worker(code, { eval: true });
      return new Promise((resolve) => worker.once('message', resolve));
    });
    assert.equal(answered, 1);
    assertMask(actor.pid, list);
    await actor.grant('release');
    assertMask(actor.pid, String(OWN));
    assertNoPartition();
  });

  it('are in it from the first line with numalign/preload, which moves the whole process', () => {
    takeOwnMask();
    const app = `import { readFileSync } from 'node:fs';
      import { grant } from 'numalign/preload';
      const of = (file) => readFileSync('/proc/self/' + file, 'utf8');
      const memory = /^\\w+ (\\S+) .*stack/m.exec(of('numa_maps'))[1];
      console.log(JSON.stringify({ ...grant.toJSON(), own: of('cgroup'), mask: /^Cpus_allowed_list:\\s*(.*)$/m.exec(of('status'))[1], memory }));`;
    const { status, stdout, stderr } = spawnSync(
      process.execPath,
      ['--import', 'numalign/preload', '--input-type=module', '-e', app],
      {
        cwd: PACKAGE,
        encoding: 'utf8',
        env: { ...process.env, NUMALIGN_ACQUIRE: '{"cpu": 2}', NUMALIGN_MANAGER: JSON.stringify(own()) },
      },
    );
    assert.equal(status, 0, stderr);
    const { enforcement, cpus: list, own: place, mask, memory, memoryNodes } = JSON.parse(stdout);
    assert.deepEqual([enforcement, mask], ['partition', list]);
    assert.match(place, /^0::\/numalign\/./m);
    assert.equal(memory, `prefer:${memoryNodes}`);
  });

  it('are in the group of the grant, also those that fork at once', async () => {
    const actor = await opened(own());
    const { cpus: list } = await actor.acquire({ cpu: 2 });
    const [child, forking] = await actor.do((_, mine) => {
      const options = { stdio: 'ignore' };
      mine.children = [
        mine.grants.a.spawn('sleep', ['1000'], options),
        mine.grants.a.spawn('sh', ['-c', 'sleep 1000 & sleep 1000 & wait'], options),
      ];
      return mine.children.map(({ pid }) => pid);
    });
    await pause(300);
    const below = read(`/proc/${forking}/task/${forking}/children`).split(' ').map(Number);
    assert.equal(below.length, 2);
    for (const pid of [child, forking, ...below]) {
      assert.equal(maskOf(pid), list);
      assert.match(cgroupOf(pid), /^\/numalign\//);
    }
    assertAlone(list, child, forking, ...below);
    assert.equal((await actor.refused((_, mine) => mine.grants.a.release())).code, 'ERR_CHILD_ALIVE');
    await actor.do(async (_, mine) => {
      for (const each of mine.children) {
        each.kill('SIGKILL');
        await new Promise((resolve) => each.once('exit', resolve));
      }
      await mine.grants.a.release();
    });
    assertNoPartition();
    // The processes that were left behind have moved out of it.
    for (const pid of below) assert.deepEqual([maskOf(pid), cgroupOf(pid)], [LEFT_ALONE, '/']);
    for (const pid of below) process.kill(pid, 'SIGKILL');
  });

  it('of others are attached, to a grant or to a container of it', async () => {
    const actor = await opened(own());
    const [a, b, everywhere] = [idler(), idler('9'), idler()];
    const { cpus: list } = await actor.acquire({ cpu: 2 });
    const attached = await actor.grant('attach', a);
    assert.deepEqual(attached, { pid: a, cpus: list, guaranteed: true, memory: null });
    assert.equal(maskOf(a), list);

    const places = await actor.do(async (_, mine) => {
      const container = (name) => ({
        name,
        resources: { requests: { cpu: 2, memory: '64Mi' }, limits: { cpu: 2, memory: '64Mi' } },
      });
      mine.pod = await mine.manager.admit({
        kind: 'Pod',
        metadata: { name: 'p' },
        spec: { containers: [container('x'), container('y')] },
      });
      return {
        x: mine.pod.container('x').cpus,
        y: mine.pod.container('y').cpus,
        enforcement: mine.manager.grants().find(({ name }) => name === 'p').enforcement,
      };
    });
    assert.equal(places.enforcement, 'partition');
    await actor.do((_, mine, pid) => mine.pod.container('x').attach(pid), b);
    assert.equal(maskOf(b), places.x);
    assertAlone(places.x, b);
    assertAlone(places.y);
    await actor.do((_, mine) => mine.pod.release());
    assert.deepEqual([maskOf(b), cgroupOf(b)], [KEEPS_MASKS ? '9' : String(OWN.difference(cpus(list))), '/']);
    await actor.grant('release');
    assert.deepEqual([maskOf(a), maskOf(everywhere)], [String(OWN), LEFT_ALONE]);
    assertNoPartition();
  });
});

describe('without root', () => {
  const asUser = { uid: UNPRIVILEGED, gid: UNPRIVILEGED };

  it('members are kept off by their masks, and the grant says so', async () => {
    const stateDir = join(folder, 'unprivileged');
    mkdirSync(stateDir);
    chownSync(stateDir, UNPRIVILEGED, UNPRIVILEGED);
    for (const options of [{ stateDir }, { stateDir: join(stateDir, 'b'), cgroupRoot: ROOT }]) {
      const actor = await opened(options, asUser);
      const { cpus: list, enforcement, warnings } = await actor.acquire({ cpu: 2 });
      const reasons = warnings.map(({ message }) => message.replace(/^.*: /, ''));
      const why = options.cgroupRoot ? ['this user may not write /sys/fs/cgroup/numalign'] : [];
      assert.deepEqual([enforcement, reasons], ['members', why]);
      assertMask(actor.pid, String(OWN.difference(cpus(list))));
      const error = await actor.refused((_, mine) => mine.manager.acquire({ cpu: 1, require: 'cpuset' }));
      assert.equal(error.code, 'ERR_ENFORCEMENT');
      assert.match(
        error.message,
        options.cgroupRoot ? /may not write \/sys\/fs\/cgroup\/numalign/ : /no cgroup root/,
      );
      await actor.grant('pin');
      assertMask(actor.pid, list);
      await actor.grant('release');
      assertMask(actor.pid, String(OWN));
      await actor.kill();
    }
  });

  it('a grant that grows onto CPUs of a member that cannot be moved is only recorded from then on', async () => {
    const stateDir = mkdtempSync(join(folder, 'shared-'));
    chownSync(stateDir, 0, UNPRIVILEGED);
    chmodSync(stateDir, 0o2770);
    const actor = await opened({ stateDir, unmovableMembers: 'report' }, asUser);
    assert.equal((await actor.acquire({ cpu: 2 })).enforcement, 'members');
    const root = await opened({ stateDir });
    const member = idler();
    await root.do((_, mine, pid) => mine.manager.addSharedMember({ pid }), member);
    const before = await actor.get('cpus');
    assert.equal(maskOf(member), String(OWN.difference(cpus(before))));
    await actor.grant('resize', { cpu: 4, noticeMs: 0 });
    const now = await actor.get('cpus');
    assert.equal(cpus(now).size, 4);
    // Root owns it.
    assert.equal(maskOf(member), String(OWN.difference(cpus(before))));
    assert.equal(await actor.get('enforcement'), 'recorded');
  });

  /** A cgroup `delegated` that the user owns, with all CPUs or these, and `numalign/work` in it. */
  function delegate(list = '') {
    const delegated = join(MOUNT, 'delegated');
    const work = join(delegated, 'numalign', 'work');
    mkdirSync(delegated);
    if (list !== '') put(delegated, 'cpuset.cpus', list);
    put(delegated, 'cgroup.subtree_control', '+cpuset');
    mkdirSync(join(delegated, 'numalign'));
    put(join(delegated, 'numalign'), 'cgroup.subtree_control', '+cpuset');
    mkdirSync(work);
    const files = ['', 'cgroup.procs', 'cgroup.subtree_control', 'cgroup.threads'];
    for (const file of files) chownSync(join(delegated, file), UNPRIVILEGED, UNPRIVILEGED);
    for (const group of [join(delegated, 'numalign'), work]) {
      for (const file of [...files, 'cpuset.cpus', 'cpuset.mems'])
        chownSync(join(group, file), UNPRIVILEGED, UNPRIVILEGED);
    }
    const stateDir = mkdtempSync(join(folder, 'delegated-'));
    chownSync(stateDir, UNPRIVILEGED, UNPRIVILEGED);
    return { work, stateDir };
  }

  it('a delegated cgroup with some of the CPUs hands out these, and keeps to them', async () => {
    const { work, stateDir } = delegate('5-8');
    const actor = new OwnActor(asUser);
    put(work, 'cgroup.procs', actor.pid);
    await actor.open({ stateDir, cgroupRoot: '/delegated/numalign', managedCPUs: '5-8' });
    await actor.do((_, mine, cgroup) => mine.manager.addSharedMember({ cgroup }), work);
    const { cpus: list } = await actor.acquire({ cpu: 2, require: 'cpuset' });
    const rest = String(cpus('5-8').difference(cpus(list)));
    assert.deepEqual([cpus(list).isSubsetOf(cpus('5-8')), read(work, 'cpuset.cpus.effective')], [true, rest]);
    await actor.grant('pin');
    assertMask(actor.pid, list);
    assert.equal(read(MOUNT, 'delegated/numalign/cpuset.cpus'), '5-8');
    await actor.grant('release');
    assertMask(actor.pid, '5-8');
  });

  it('a delegated cgroup leads to cpusets, with the reason why there is no partition', async () => {
    const { work, stateDir } = delegate();
    const actor = new OwnActor(asUser);
    const member = idler();
    put(work, 'cgroup.procs', actor.pid);
    put(work, 'cgroup.procs', member);
    await actor.open({ stateDir, cgroupRoot: '/delegated/numalign' });
    await actor.do((_, mine, cgroup) => mine.manager.addSharedMember({ cgroup }), work);
    const error = await actor.refused((_, mine) => mine.manager.acquire({ cpu: 2, require: 'partition' }));
    assert.equal(error.code, 'ERR_ENFORCEMENT');
    assert.match(error.message, /only the owner of the cgroup above/);
    assert.equal(read(work, 'cpuset.cpus.effective'), String(OWN));
    const { cpus: list, enforcement, warnings } = await actor.acquire({ cpu: 2 });
    assert.equal(enforcement, 'cpuset');
    assert.match(warnings[0].message, /only the owner of the cgroup above/);
    const rest = String(OWN.difference(cpus(list)));
    assert.equal(read(work, 'cpuset.cpus.effective'), rest);
    assert.equal(maskOf(member), rest);
    const result = await actor.grant('pin');
    assert.equal(result.guaranteed, true);
    assertMask(actor.pid, list);
    assert.match(cgroupOf(actor.pid), /^\/delegated\/numalign\//);
    await actor.grant('resize', { cpu: 4, noticeMs: 0 });
    assertMask(actor.pid, await actor.get('cpus'));
    await actor.grant('release');
    assertMask(actor.pid, String(OWN));
    assert.equal(cgroupOf(actor.pid), '/delegated/numalign/work');
    assert.equal(read(work, 'cpuset.cpus.effective'), String(OWN));
  });
});

describe('CPUs that the kernel was started to isolate', { skip: ISOLATED.isEmpty && 'no isolcpus=' }, () => {
  it('are in the partition like others, once they are granted', async () => {
    const actor = await opened(own());
    const pool = await actor.do((_, mine) => mine.manager.sharedPool());
    assert.ok(!cpus(pool).intersects(ISOLATED));
    const one = await actor.acquire({ cpu: 1, isolation: 'require' });
    const two = await actor.acquire({ cpu: 2, isolation: 'require' }, 'b');
    const other = await actor.acquire({ cpu: 2 }, 'c');
    for (const { enforcement, flags, warnings } of [one, two, other]) {
      assert.deepEqual([enforcement, flags, warnings], ['partition', [], []]);
    }
    assert.deepEqual([one.isIsolated, two.isIsolated, other.isIsolated], [true, true, false]);
    assertPartition(String(cpus(one.cpus).union(cpus(two.cpus)).union(cpus(other.cpus))));
    assert.equal(
      (await actor.refused((_, mine) => mine.grants.b.pin())).code,
      'ERR_ISOLATED_NEEDS_PLACEMENT',
    );
    await actor.grant('pin');
    assertMask(actor.pid, one.cpus);
    await actor.grant('release');
    const free = await actor.do((_, mine) => mine.manager.freeIsolatedCpus());
    assert.equal(free, String(ISOLATED.difference(cpus(two.cpus))));
    for (const name of ['b', 'c']) await actor.grant('release', undefined, name);
    assertNoPartition();
    assert.ok(cpus(maskOf(actor.pid)).isSubsetOf(OWN), maskOf(actor.pid));
  });
});
