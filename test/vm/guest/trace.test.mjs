// The kernel's own trace (sched_switch) of granted CPUs: over many grants no task of another user
// ran there. cgroup v2, root, 16 CPUs. Run by node --test.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { budget } from '../../support/budget.mjs';
import * as trace from './kernel-trace.mjs';
import * as kernel from './kernel-view.mjs';
import { open } from './state-folders.mjs';

const CYCLES = budget({ all: 1_000, usual: 150 });
// With masks alone: enough cycles that a task that is not moved shows for certain.
const MASK_CYCLES = 100;
const GRANTED = [4, 5, 6, 7];
const SCHED_SETAFFINITY = 203;

// One wakes on any CPU that the kernel chooses, again and again; the other tries by force to run on
// each of the granted CPUs.
const WANDERER = 'while (1) { select(undef, undef, undef, 0.01); for (my $i = 0; $i < 500; $i++) {} }';
const INTRUDER = `my $i = 0; while (1) {
  my $mask = pack('Q', 1 << (4 + $i++ % 4));
  syscall(${SCHED_SETAFFINITY}, 0, 8, $mask);
  select(undef, undef, undef, 0.01);
}`;
const others = [];
before(() => {
  for (const script of [WANDERER, WANDERER, INTRUDER, INTRUDER]) {
    others.push(spawn('perl', ['-e', script], { stdio: 'ignore' }));
  }
  trace.open(GRANTED);
});
after(async () => {
  trace.close(kernel.possible());
  for (const other of others) {
    other.kill('SIGKILL');
    if (other.exitCode === null && other.signalCode === null) await once(other, 'exit');
  }
});

/** Every task that a CPU switched to or from, with repetitions. */
const tasks = () => trace.switches().flatMap(({ from, to }) => [from, to]);

/** Interrupts so far on the granted CPUs. */
function interrupts() {
  const [head, ...lines] = kernel.read('/proc/interrupts').split('\n');
  const columns = head
    .trim()
    .split(/\s+/)
    .map((name) => Number(name.slice(3)));
  const places = GRANTED.map((cpu) => columns.indexOf(cpu) + 1);
  const counts = lines.map((line) => line.trim().split(/\s+/));
  return counts.reduce((sum, row) => sum + places.reduce((own, at) => own + (Number(row[at]) || 0), 0), 0);
}

/** By name: how often. */
function counted(names) {
  const counts = new Map();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return [...counts].map(([name, count]) => `${name} ${count}`).join(', ');
}

// A slow machine runs the others seldom.
const MOST_LOOKS = 20;

test('the trace sees others on these CPUs while they are free', async () => {
  const isSeen = () => {
    const seen = new Set(tasks().map(([, tid]) => Number(tid)));
    return others.some(({ pid }) => seen.has(pid));
  };
  trace.clear();
  trace.record();
  for (let look = 0; look < MOST_LOOKS && !isSeen(); look++) {
    await new Promise((resolve) => setTimeout(resolve, 1_000));
  }
  trace.pause();
  assert.ok(isSeen(), 'no other task ran there, so that a grant would show nothing');
});

/**
 * Grants all of them again and again while the kernel records what runs there; returns how often
 * each task of another user did.
 */
async function foreignTasks(t, manager, cycles, level) {
  trace.clear();
  let foundInterrupts = 0;
  const levels = new Set();
  for (let cycle = 0; cycle < cycles; cycle++) {
    const grant = await manager.acquire({ cpu: GRANTED.length, enforcement: level });
    levels.add(grant.enforcement);
    trace.record();
    // Sometimes used, and long enough for the others to wake.
    if (cycle % 20 === 0) {
      const begin = interrupts();
      grant.pin();
      await new Promise((resolve) => setTimeout(resolve, 50));
      foundInterrupts += interrupts() - begin;
    }
    trace.pause();
    await grant.release();
  }
  assert.deepEqual([...levels], [level]);
  assert.equal(trace.lost(GRANTED), 0, 'events were lost');
  const own = new Set(readdirSync('/proc/self/task'));
  const isOfKernel = trace.kernelTasks();
  const found = tasks().filter(([, tid]) => tid !== '0' && !own.has(tid));
  const isKernels = (task) => isOfKernel(...task);
  t.diagnostic(`kernel threads: ${counted(found.filter(isKernels).map(([command]) => command)) || 'none'}`);
  t.diagnostic(`interrupts in ${Math.ceil(cycles / 20)} of ${cycles} grants: ${foundInterrupts}`);
  return counted(found.filter((task) => !isKernels(task)).map(([command, tid]) => `${command} (${tid})`));
}

const SETTINGS = {
  managedCPUs: `0,${GRANTED.join()}`,
  reservedSystemCPUs: '0',
  cgroupRoot: '/numalign-trace',
};

test(`in ${CYCLES} grants no task of another user runs on the granted CPUs`, async (t) => {
  const manager = await open(SETTINGS);
  assert.equal(await foreignTasks(t, manager, CYCLES, 'partition'), '');
});

test('members are off the granted CPUs before they are granted, by their masks alone', async (t) => {
  const [wanderers, intruders] = [others.slice(0, 2), others.slice(2)];
  const manager = await open(SETTINGS);
  for (const { pid } of wanderers) await manager.addSharedMember({ pid });
  let found = '';
  const isFound = ({ pid }) => found.includes(`(${pid})`);
  for (let look = 0; look < MOST_LOOKS && !intruders.some(isFound); look++) {
    found = await foreignTasks(t, manager, MASK_CYCLES, 'members');
    assert.ok(!wanderers.some(isFound), found);
  }
  // Only others that are no members, as a control that tasks can be there.
  assert.ok(intruders.some(isFound), found);
});
