// What the kernel's own trace (sched_switch) says of granted CPUs: over many grants no task of
// another user ran there. cgroup v2, root, 16 CPUs. Run by node --test.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { budget } from '../../support/budget.mjs';
import * as kernel from './kernel-view.mjs';
import { open } from './state-folders.mjs';

const TRACE = '/sys/kernel/tracing';
const CYCLES = budget(1_000, 150);
// By masks alone: so many that a task that is not moved is seen for certain.
const MASK_CYCLES = 100;
const GRANTED = [4, 5, 6, 7];
const MASK = GRANTED.reduce((mask, cpu) => mask | (1 << cpu), 0).toString(16);
const PF_KTHREAD = 0x200000;
const SCHED_SETAFFINITY = 203;
const put = (file, text) => writeFileSync(join(TRACE, file), String(text));

// One wakes wherever the kernel likes, again and again; the other tries by force to run on each of
// the granted CPUs.
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
  put('tracing_on', 0);
  put('current_tracer', 'nop');
  put('buffer_size_kb', 4096);
  put('tracing_cpumask', MASK);
  put('events/sched/sched_switch/enable', 1);
});
after(async () => {
  put('events/sched/sched_switch/enable', 0);
  put('tracing_cpumask', 'ffff');
  put('buffer_size_kb', 64);
  for (const other of others) {
    other.kill('SIGKILL');
    if (other.exitCode === null && other.signalCode === null) await once(other, 'exit');
  }
});

/** Kernel threads by tid. */
function kernelThreads() {
  const tids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return tids.filter((tid) => {
    try {
      const stat = readFileSync(`/proc/${tid}/stat`, 'utf8');
      return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[9 - 3]) & PF_KTHREAD;
    } catch {
      return false; // it has ended
    }
  });
}

/** `[command, tid]` of every task that was switched to or from. */
function switches() {
  return [
    ...readFileSync(join(TRACE, 'trace'), 'utf8').matchAll(
      /(?:prev|next)_comm=(.*?) (?:prev|next)_pid=(\d+) /g,
    ),
  ].map(([, command, tid]) => [command, tid]);
}

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

function lost() {
  return GRANTED.reduce(
    (sum, cpu) => sum + Number(/^overrun: (\d+)$/m.exec(kernel.read(TRACE, `per_cpu/cpu${cpu}/stats`))[1]),
    0,
  );
}

/** By name: how often. */
function counted(names) {
  const counts = new Map();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return [...counts].map(([name, count]) => `${name} ${count}`).join(', ');
}

// A slow machine runs the others seldom.
const MOST_LOOKS = 20;

test('the trace sees others on these CPUs while they are nobody’s', async () => {
  const isSeen = () => {
    const seen = new Set(switches().map(([, tid]) => Number(tid)));
    return others.some(({ pid }) => seen.has(pid));
  };
  put('trace', '');
  put('tracing_on', 1);
  for (let look = 0; look < MOST_LOOKS && !isSeen(); look++) {
    await new Promise((resolve) => setTimeout(resolve, 1_000));
  }
  put('tracing_on', 0);
  assert.ok(isSeen(), 'nobody was there, so that a grant would show nothing');
});

/**
 * Grants all of them again and again while the kernel records who runs there; answers how often
 * each task of another user did.
 */
async function foreignTasks(t, manager, cycles, level) {
  put('trace', '');
  let foundInterrupts = 0;
  const levels = new Set();
  for (let cycle = 0; cycle < cycles; cycle++) {
    const grant = await manager.acquire({ cpu: GRANTED.length, enforcement: level });
    levels.add(grant.enforcement);
    put('tracing_on', 1);
    // Now and then used, and long enough for the others to wake.
    if (cycle % 20 === 0) {
      const begin = interrupts();
      grant.pin();
      await new Promise((resolve) => setTimeout(resolve, 50));
      foundInterrupts += interrupts() - begin;
    }
    put('tracing_on', 0);
    await grant.release();
  }
  assert.deepEqual([...levels], [level]);
  assert.equal(lost(), 0, 'events were lost');
  const own = new Set(readdirSync('/proc/self/task'));
  const ofKernel = new Set(kernelThreads());
  const tasks = switches().filter(([, tid]) => tid !== '0' && !own.has(tid));
  const isKernels = ([command, tid]) => ofKernel.has(tid) || /^kworker\//.test(command);
  t.diagnostic(`kernel threads: ${counted(tasks.filter(isKernels).map(([command]) => command)) || 'none'}`);
  t.diagnostic(`interrupts in ${Math.ceil(cycles / 20)} of ${cycles} grants: ${foundInterrupts}`);
  return counted(tasks.filter((task) => !isKernels(task)).map(([command, tid]) => `${command} (${tid})`));
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
  // Of the others only those that are no members: so that it is known that somebody could be there.
  assert.ok(intruders.some(isFound), found);
});
