// Threads of a Node process on a machine with enough CPUs to place every kind separately, and with
// isolated ones. For node --test in a virtual machine of 16 CPUs, as root; the isolated part needs
// a kernel that was started with isolcpus=12-15.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { affinity, threads } from '../../../dist/entries/diagnostics.js';
import { discover } from '../../../dist/entries/topology.js';
import { CpuSet, openManager, pin } from '../../../dist/index.js';
import { runProgram } from '../../threads/placed-program.mjs';

const folder = mkdtempSync(join(tmpdir(), 'numalign-vm-'));
after(() => rmSync(folder, { recursive: true }));
let folders = 0;
const stateDir = () => join(folder, `state-${folders++}`);

const { cpus, isolated } = await discover();
const MANAGED = cpus.difference(isolated);
// Emulated CPUs are slow.
const WATCH_MS = 4_000;
const OWN_CPUS = affinity();

/** Every thread that ran since its placement was only where its kind belongs. */
function checkPlaces({ placed, seen }, places) {
  const { kinds } = placed;
  const kindOf = new Map(Object.entries(kinds).flatMap(([kind, tids]) => tids.map((tid) => [tid, kind])));
  for (const [tid, where] of seen) {
    const kind = kindOf.get(tid) ?? 'others';
    const allowed = CpuSet.parse(places[kind]);
    for (const cpu of where)
      assert.ok(allowed.has(cpu), `thread ${tid} (${kind}) was seen on CPU ${cpu}, not on ${allowed}`);
  }
  for (const kind of ['main', 'workers', 'pool']) {
    for (const tid of kinds[kind]) assert.ok(seen.has(tid), `thread ${tid} (${kind}) has not run`);
  }
  assert.ok(
    [...kinds.v8, ...kinds.others].some((tid) => seen.has(tid)),
    'none of the helpers has run',
  );
}

describe('a busy program on four CPUs of its own', { skip: MANAGED.size < 8 && 'too few CPUs' }, () => {
  const manager = { managedCPUs: String(MANAGED), reservedSystemCPUs: String(MANAGED.first) };

  it('runs every kind of thread only where it was placed', async () => {
    const probe = await openManager({ stateDir: stateDir(), ...manager });
    const grant = await probe.acquire({ cpu: 4 });
    const [a, b, c, d] = grant.cpus.toArray().map(String);
    await grant.release();
    probe.close();
    const placement = {
      main: a,
      workers: { cpus: `${b},${c}`, oneToOne: true },
      pool: `${c},${d}`,
      others: d,
    };
    const run = await runProgram(
      { stateDir: stateDir(), cpu: 4, manager, threads: placement, fifo: 10 },
      WATCH_MS,
    );
    assert.equal(run.placed.grant, String(CpuSet.parse(`${a},${b},${c},${d}`)));
    checkPlaces(run, { main: a, workers: `${b},${c}`, pool: `${c},${d}`, v8: d, others: d });
    const { masks, workerTids, scheduling } = run.placed;
    // Each Worker has one of its own.
    assert.deepEqual(workerTids.map((tid) => masks[tid]).sort(), [b, c].sort());
    assert.deepEqual(scheduling, { tid: run.pid, policy: 'fifo', priority: 10, nice: 0, resetOnFork: true });
    assert.deepEqual(run.ended.left, []);
  });

  it('spreads over all of them without a placement, and over no other', async () => {
    const run = await runProgram({ stateDir: stateDir(), cpu: 4, manager }, WATCH_MS);
    const { grant } = run.placed;
    checkPlaces(run, { main: grant, workers: grant, pool: grant, v8: grant, others: grant });
    const used = new Set([...run.seen.values()].flatMap((where) => [...where]));
    assert.ok(used.size > 1, `only CPU ${[...used]} was used`);
  });
});

describe('several isolated CPUs', { skip: isolated.size < 4 && 'started without isolcpus=12-15' }, () => {
  // One CPU that is not isolated is the shared pool.
  const manager = { managedCPUs: String(isolated.union(CpuSet.of(0))), reservedSystemCPUs: '0' };

  it('need a placement, which gives every thread one of them', async () => {
    const own = await openManager({ stateDir: stateDir(), ...manager });
    const grant = await own.acquire({ cpu: isolated.size, isolation: 'require' });
    assert.equal(String(grant.cpus), String(isolated));
    assert.throws(() => grant.pin(), { code: 'ERR_ISOLATED_NEEDS_PLACEMENT' });
    grant.pin({ threads: 'current' });
    const { pool } = await grant.placeThreads();
    assert.ok(pool.guaranteed);
    for (const { cpus: mask } of threads()) assert.ok(mask.size === 1 && mask.isSubsetOf(isolated));
    await grant.release();
    own.close();
    // Back from the shared pool of that manager, a single CPU.
    pin(OWN_CPUS);
  });

  it('are all used by a busy program, each thread on one of them', async () => {
    const run = await runProgram(
      { stateDir: stateDir(), cpu: isolated.size, isolation: 'require', manager },
      WATCH_MS,
    );
    const { grant, kinds, masks } = run.placed;
    assert.equal(grant, String(isolated));
    checkPlaces(run, { main: grant, workers: grant, pool: grant, v8: grant, others: grant });
    for (const [tid, where] of run.seen) assert.equal([...where].join(), masks[tid] ?? [...where].join());
    const javascript = [...kinds.main, ...kinds.workers].map((tid) => masks[tid]);
    assert.equal(new Set(javascript).size, 3);
  });
});

it('limits allow a scheduling class without CAP_SYS_NICE up to their value', () => {
  const program = fileURLToPath(new URL('../../threads/scheduling-program.mjs', import.meta.url));
  const attempts = [
    ...[
      { policy: 'fifo', priority: 6 },
      { policy: 'fifo', priority: 5 },
    ],
    ...[{ nice: -3 }, { nice: -2 }, { nice: 4 }],
  ];
  const { stdout, stderr } = spawnSync(
    'prlimit',
    [
      ...['--rtprio=5:5', '--nice=22:22', 'setpriv', '--bounding-set=-sys_nice', '--inh-caps=-sys_nice'],
      ...[process.execPath, program, JSON.stringify({ stateDir: stateDir(), attempts })],
    ],
    { encoding: 'utf8' },
  );
  assert.equal(stderr, '');
  const { answers, after: afterwards } = JSON.parse(stdout);
  assert.deepEqual(
    answers.map(({ code, limit, policy, priority, nice }) => code ?? { limit, policy, priority, nice }),
    [
      'ERR_SCHEDULING',
      { limit: undefined, policy: 'fifo', priority: 5, nice: 0 },
      'ERR_SCHEDULING',
      { limit: undefined, policy: 'other', priority: 0, nice: -2 },
      { limit: undefined, policy: 'other', priority: 0, nice: 4 },
    ],
  );
  // Without the capability the flag stays: it has no effect on an ordinary thread.
  assert.deepEqual([afterwards.policy, afterwards.nice, afterwards.resetOnFork], ['other', 0, true]);
});
