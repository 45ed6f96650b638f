// What isolation is worth: a process on one CPU beside three that take whatever they get, and beside
// one that sends packets, whose interrupts come on that CPU. How late
// it wakes up and for how much of that it waited for a CPU, gaps while it spins, how late its event
// loop is, and how long garbage collections take by where V8's helpers run.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { affinity } from '../dist/entries/diagnostics.js';
import { CpuSet } from '../dist/index.js';
import { moveInterrupts, networkInterrupts, SENDER } from './support/network-interrupts.mjs';
import { removeCgroups } from './support/remove-cgroups.mjs';
import { number, percent } from './support/units.mjs';

export const description = 'a process beside three that spin, by how it is kept from them';
export const options = {
  seconds: { type: 'string', help: 'isolation: how long each way is measured (default 12)' },
};

const [VICTIM, GC_VICTIM] = ['victim.mjs', 'gc-victim.mjs'].map((name) =>
  fileURLToPath(new URL(`support/${name}`, import.meta.url)),
);
const AGGRESSORS = 3;
// Nobody is asked to leave.
const recorded = { sharedMember: false, cgroupRoot: null };
const cgroupRoot = `/numalign-bench-${process.pid}`;
const slice = `${cgroupRoot}-slice`;
// The lowest is the first to be granted.
const [own, ...others] = affinity();
const isV2 = existsSync('/sys/fs/cgroup/cgroup.controllers');
const taskset = ['taskset', '-c', String(own)];
const spin = ['sh', '-c', 'while :; do :; done'];

/** What others are compared with. */
const IDLE = 'idle machine';

const level = (name, manager) => ({
  name: `numalign, ${name}`,
  ...{ manager, members: name !== 'recorded', pin: true, request: { require: name } },
});
const enforced = (name) => level(name, { cgroupRoot, enforcement: name });
// Others keep to their CPUs: what is left is what the kernel does.
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

/** Runs `action` with a new state folder, beside aggressors that are started by a command. */
async function beside(count, [program, ...args], action) {
  const stateDir = mkdtempSync(join(tmpdir(), 'numalign-bench-'));
  const aggressors = Array.from({ length: count }, () => spawn(program, args, { stdio: 'ignore' }));
  try {
    await Promise.all(aggressors.map((other) => once(other, 'spawn')));
    return await action(
      stateDir,
      aggressors.map(({ pid }) => pid),
    );
  } finally {
    for (const other of aggressors) {
      const ended = once(other, 'exit');
      other.kill('SIGKILL');
      await ended;
    }
    rmSync(stateDir, { recursive: true });
    for (const root of [cgroupRoot, slice]) removeCgroups(root);
  }
}

// As AllowedCPUs= of a slice does it. Answers why not, where that is not allowed here.
function putIntoSlice(pids) {
  const folder = isV2 ? `/sys/fs/cgroup${slice}` : `/sys/fs/cgroup/cpuset${slice}`;
  try {
    if (isV2) writeFileSync('/sys/fs/cgroup/cgroup.subtree_control', '+cpuset');
    mkdirSync(folder);
    writeFileSync(`${folder}/cpuset.cpus`, CpuSet.from(others).toString());
    if (!isV2) writeFileSync(`${folder}/cpuset.mems`, readFileSync(`${folder}/../cpuset.mems`, 'utf8'));
    for (const pid of pids) writeFileSync(`${folder}/cgroup.procs`, String(pid));
  } catch (error) {
    return error.message;
  }
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
  return beside(aggressors, spin, async (stateDir, pids) => {
    if (way.slice) {
      const unreached = putIntoSlice(pids);
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

// The sender is on the other CPUs. Where the interrupts come is not left to chance: it is where they
// disturb the most.
async function measureBesideNetwork({ manager, pin, request }, seconds) {
  const irqs = networkInterrupts();
  if (irqs.length === 0) return { unreached: 'no interrupt of a network interface is counted here' };
  let putBack = () => {};
  try {
    putBack = moveInterrupts(irqs, own);
    const sender = ['taskset', '-c', CpuSet.from(others).toString(), process.execPath, SENDER];
    return await beside(1, sender, async (stateDir, pids) => {
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
  // The aggressors are where the shared pool is: off the granted CPU.
  const spinElsewhere = ['taskset', '-c', CpuSet.from(others).toString(), ...spin];
  return beside(aggressors, spinElsewhere, async (stateDir) => {
    const order = { manager: { ...recorded, stateDir }, threads, seconds };
    return victim([], [...flags, GC_VICTIM, JSON.stringify(order)], () => []);
  });
}

// `lookAtOthers` is called in the middle of the measurement, when everybody is where he is to be.
async function victim(command, args, lookAtOthers) {
  const [program, ...rest] = [...command, process.execPath, '--expose-gc', ...args];
  const child = spawn(program, rest, { stdio: ['ignore', 'pipe', 'inherit'] });
  let text = '';
  let aggressorCpus = [];
  child.stdout.setEncoding('utf8').on('data', (part) => {
    // The first line says that it begins.
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

// A row for each way that has samples; the medians beside that of the idle machine.
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

// What a way came to, and whether others were on the CPU.
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
