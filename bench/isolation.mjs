// What isolation is worth: a process on one CPU beside three that take any CPU time they get, and
// beside one that sends packets whose interrupts arrive on that CPU. Measures how late it wakes up
// and how much of that it waited for a CPU, gaps while it spins, how late its event loop is, and
// how long garbage collections take depending on where V8's helpers run.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { affinity } from '../dist/entries/diagnostics.js';
import { CpuSet } from '../dist/index.js';
import { besideAggressors, cgroupRoot, putIntoSlice, SPIN } from './support/aggressors.mjs';
import { moveInterrupts, networkInterrupts, SENDER } from './support/network-interrupts.mjs';
import { number, percent } from './support/units.mjs';

export const description = 'a process beside three that spin, by how it is kept from them';
export const explanation = `
On the *idle machine* nothing spins. Otherwise three processes do: *left alone*; beside \`taskset\`;
beside \`taskset\` with the three in a cgroup of the other CPUs, as \`AllowedCPUs=\` of a slice does it;
and beside a grant at each enforcement level. A level that the machine does not offer has the
reason. *Network*: interrupts of a network arrive on the process's CPU, which is otherwise its own;
with \`quiet\` they do not.

- **wake-up**: how late the main thread wakes up from 200 µs of \`clock_nanosleep\`, measured in C.
- **run delay of a wake-up**: the part of it that the thread was runnable and waited for a CPU
  (\`/proc/thread-self/schedstat\`).
- **gap while spinning**: how long the clock stands still for a loop that only reads it, from 20 µs
  on.
- **event loop**: from one timer of 1 ms to the next (\`monitorEventLoopDelay\`), 1 ms of it the
  timer's.
- **collection**: how long garbage collections stop the program, by where V8's helper threads may
  run, with the three on the other CPUs.

The last table shows whether the process had its CPU to itself: where its threads and the three were
allowed to run, how much of the CPU's time other tasks took, and what the grant's audit counts. If
others took much of the *idle machine*, another program was busy and all figures suffer.`;
export const options = {
  seconds: { type: 'string', help: 'isolation: how long each way is measured (default 12)' },
};

const [VICTIM, GC_VICTIM] = ['victim.mjs', 'gc-victim.mjs'].map((name) =>
  fileURLToPath(new URL(`support/${name}`, import.meta.url)),
);
const AGGRESSORS = 3;
// No member is asked to leave.
const recorded = { sharedMember: false, cgroupRoot: null };
// The lowest CPU is granted first.
const [own, ...others] = affinity();
const taskset = ['taskset', '-c', String(own)];

/** The base of comparisons. */
const IDLE = 'idle machine';

const level = (name, manager) => ({
  name: `numalign, ${name}`,
  ...{ manager, members: manager !== recorded, pin: true, request: { require: name } },
});
const enforced = (name) => level(name, { cgroupRoot, enforcement: name });
// Others keep to their CPUs: what remains is the kernel's work.
const besideNetwork = (name, request) => ({
  ...{ name: `network: ${name}`, network: true, pin: true, manager: recorded, request },
});

const WAYS = [
  { name: IDLE, aggressors: 0, command: taskset },
  { name: 'left alone' },
  { name: 'taskset', command: taskset },
  { name: 'taskset, others in a slice', command: taskset, slice: true },
  level('recorded', recorded),
  level('members', { cgroupRoot: null }),
  enforced('cpuset'),
  enforced('partition'),
  enforced('isolated'),
  besideNetwork('numalign, recorded', {}),
  besideNetwork('numalign, recorded and quiet', { quiet: true }),
];

const COLLECTIONS = [
  { name: IDLE, aggressors: 0, threads: 'process' },
  { name: 'helpers with the others', threads: 'current' },
  { name: 'helpers beside the main thread', threads: 'process' },
  { name: 'no helpers', threads: 'process', flags: ['--single-threaded-gc'] },
];

export async function run({ seconds: text = '12' }) {
  const seconds = Number(text);
  if (!(seconds > 0)) throw new Error(`--seconds ${text}: a number above 0`);
  if (others.length === 0) throw new Error('at least two CPUs are needed, one of them for the others');
  const ways = [];
  for (const way of WAYS) ways.push({ name: way.name, ...(await measure(way, seconds)) });
  const collections = [];
  for (const way of COLLECTIONS) collections.push({ name: way.name, ...(await collect(way, seconds)) });
  const reached = ways.filter(({ unreached }) => unreached === undefined);
  return [
    ...spreads('wake-up', reached, ({ felt }) => felt.wakeUps),
    ...spreads('run delay of a wake-up', reached, ({ felt }) => felt.runDelays),
    ...spreads('gap while spinning', reached, ({ felt }) => felt.gaps, gapsRemark),
    ...spreads('event loop', reached, ({ felt }) => felt.eventLoop),
    ...spreads('collection', collections, ({ pauses }) => pauses, collectionRemark),
    ...ways.map(circumstances),
  ];
}

const cpusOf = (pid) => /^Cpus_allowed_list:\s*(\S+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))[1];

function measure(way, seconds) {
  const {
    aggressors = AGGRESSORS,
    command = [],
    manager = recorded,
    members = false,
    pin = false,
    request = {},
  } = way;
  if (way.network) return measureBesideNetwork(way, seconds);
  return besideAggressors(aggressors, SPIN, async (stateDir, pids) => {
    if (way.slice) {
      const unreached = putIntoSlice(pids, others);
      if (unreached) return { unreached };
    }
    const order = { manager: { ...manager, stateDir }, request, members: members ? pids : [], pin, seconds };
    const answer = await victim(command, [VICTIM, JSON.stringify(order)], () => pids.map(cpusOf));
    if ((way.slice || command.length > 0) && answer.cpus !== String(own)) {
      throw new Error(`${way.name}: CPU ${answer.cpus} was granted, not ${own}`);
    }
    return answer;
  });
}

// The sender is on the other CPUs. Interrupts are directed to where they disturb the most, since
// chance would vary.
async function measureBesideNetwork({ manager, pin, request }, seconds) {
  const irqs = networkInterrupts();
  if (irqs.length === 0) return { unreached: 'no interrupt of a network interface is counted here' };
  let putBack = () => {};
  try {
    putBack = moveInterrupts(irqs, own);
    const sender = ['taskset', '-c', CpuSet.from(others).toString(), process.execPath, SENDER];
    return await besideAggressors(1, sender, async (stateDir, pids) => {
      const order = { manager: { ...manager, stateDir }, request, members: [], pin, seconds };
      return victim([], [VICTIM, JSON.stringify(order)], () => pids.map(cpusOf));
    });
  } catch (error) {
    if (!['EACCES', 'EPERM', 'EIO'].includes(error.code)) throw error;
    return { unreached: error.message };
  } finally {
    putBack();
  }
}

function collect({ aggressors = AGGRESSORS, threads, flags = [] }, seconds) {
  // The aggressors are in the shared pool: off the granted CPU.
  const spinElsewhere = ['taskset', '-c', CpuSet.from(others).toString(), ...SPIN];
  return besideAggressors(aggressors, spinElsewhere, async (stateDir) => {
    const order = { manager: { ...recorded, stateDir }, threads, seconds };
    return victim([], [...flags, GC_VICTIM, JSON.stringify(order)], () => []);
  });
}

// `lookAtOthers` is called in the middle of the measurement, when all processes are in place.
async function victim(command, args, lookAtOthers) {
  const [program, ...rest] = [...command, process.execPath, '--expose-gc', ...args];
  const child = spawn(program, rest, { stdio: ['ignore', 'pipe', 'inherit'] });
  let text = '';
  let aggressorCpus = [];
  child.stdout.setEncoding('utf8').on('data', (part) => {
    // The first line reports the start.
    if (text === '') aggressorCpus = lookAtOthers();
    text += part;
  });
  const [code] = await once(child, 'close');
  if (code !== 0) throw new Error(`the measured process ended with ${code}`);
  return {
    ...JSON.parse(text.trim().split('\n').at(-1)),
    aggressorCpus: [...new Set(aggressorCpus)].join(' '),
  };
}

function deviceInterrupts({ cpus }) {
  return cpus.reduce((sum, cpu) => sum + cpu.deviceInterrupts, 0);
}

// A row for each way with samples; its medians are compared with the idle machine's.
function spreads(what, ways, spreadOf, remarkOf = () => '') {
  const idleNs = spreadOf(ways.find(({ name }) => name === IDLE)).medianNs;
  return ways.map((way) => {
    const { samples, ...times } = spreadOf(way);
    const remark = remarkOf(way);
    const row = { name: `${what}: ${way.name}`, ...times, samples, remark };
    return idleNs > 0 && times.medianNs !== undefined
      ? { ...row, yardstick: 'idle', yardstickNs: idleNs, ratio: times.medianNs / idleNs }
      : row;
  });
}

const gapsRemark = ({ felt }) =>
  `${number(felt.gapsASecond)} gaps a second, ${percent(felt.lost)} of the time; run delay ${percent(felt.waited)}`;

const collectionRemark = ({ meanNs }) => `mean ${number(meanNs / 1e6)} ms`;

// The outcome of a way, and whether others were on the CPU.
function circumstances(way) {
  if (way.unreached !== undefined)
    return { name: way.name, level: 'not reached here', remark: way.unreached };
  const { audit, threads, cpus, aggressorCpus, othersShare, stolenShare } = way;
  const main = audit.threads.find(({ role }) => role === 'main');
  const isConfined = threads.main === cpus;
  return {
    name: way.name,
    level: audit.level,
    'main thread on': threads.main,
    'helpers on': threads.others.join(' '),
    'aggressors on': aggressorCpus,
    'others on its CPU': isConfined ? percent(othersShare) : undefined,
    stolen: percent(stolenShare),
    'run delay ms': Math.round(main.runDelayNs / 1e6),
    'elapsed ms': Math.round(audit.elapsedMs),
    involuntary: main.involuntarySwitches,
    migrations: main.migrations,
    'device interrupts': deviceInterrupts(audit),
    'foreign tasks': audit.totals.foreignTasks,
  };
}
