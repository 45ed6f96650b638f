// All targets: by scenario and row, the most that a member of the row may be, or with { least } the
// least.
// Members that end in E are multiples of an empty call into an addon, measured in the same run. If
// a goal is a time, it is the time with a call of 8.5 ns.

const E_NS = 8.5;

/** A time as a multiple of E. */
const us = (time) => Number(((time * 1000) / E_NS).toPrecision(3));
const ms = (time) => us(time * 1000);

const each = (names, targets) => Object.fromEntries(names.map((name) => [name, targets]));
const GRANTS = [1, 64, 512];

/** A cost that hardly grows. */
const FLAT = { exponent: 0.06, lastOverFirst: 1.5 };

/** By scenario and name of a row: the most by member. */
export const TARGETS = {
  // About twice what it costs a process to watch the state's file.
  bystander: each(
    ['simulated', 'this machine'].flatMap((machine) =>
      ['no listener', 'listener'].map((listener) => `${machine}, 512 grants, ${listener}`),
    ),
    { cpuE: us(110), loopShare: 0.01, p99OverNs: 1e6, maxOverNs: 1e6 },
  ),
  calls: each(['admit, this machine, 1 grant', 'admit, this machine, 64 grants'], { calls: 90 }),
  // Missed: each process reads the lines of all others, in code that its few turns hardly warm up.
  contention: {
    '1 process, tmpfs': { pairE: us(200) },
    '8 processes, tmpfs': { pairE: us(588), fairness: { least: 0.7 } },
    '32 processes, tmpfs': { pairE: us(833), fairness: { least: 0.7 } },
  },
  'cpu-hints': {
    'cpu-hints-8numa-512-2': { ratio: 400 },
    'cpu-hints-8numa-512-64': { ratio: 400 },
  },
  // Not of this machine: discover reads PCI devices too, for which hwloc takes 14 ms.
  discover: { '4,096 PUs from XML': { ratio: 1.15 } },
  // Missed: all but the writes is JavaScript. On this machine, shared members leave the CPUs first.
  durable: {
    'admit and release, 2 nodes, tmpfs': { kubeletPart: 1 / 6 },
    'admit and release, 2 nodes, disk': { kubeletPart: 1 / 3 },
    ...durable('simulated', 'tmpfs', { alone: { costE: us(120) }, foreign: { costE: us(150) } }),
    ...durable('this machine', 'tmpfs', { alone: { costE: us(250) }, foreign: { costE: us(280) } }),
    ...durable('simulated', 'disk', { alone: { ratio: 2 }, foreign: { ratio: 2.5 } }),
    ...durable('this machine', 'disk', { alone: { ratio: 3 }, foreign: { ratio: 3.5 } }),
  },
  // Missed: code that runs for the first time is cold, also where it is compiled.
  first: {
    'import, this machine': { cpuE: ms(15) },
    'open, this machine': { cpuE: ms(15) },
    'first acquire, this machine': { cpuE: ms(6) },
    'second acquire, this machine': { cpuE: us(400) },
    'hot acquire and release, simulated': { cpuE: us(150) },
  },
  growth: {
    'admit alone, 1 to 1,000 grants': FLAT,
    'admit after a foreign commit, 1 to 1,000 grants': FLAT,
    // A loop that never lets the event loop turn asks the kernel about each owner.
    'admit, 0 to 64 living owners': { exponent: 0.5, lastOverFirst: 4 },
    // What an exponent would allow at a thousand times as many: a separate bound for the last of
    // them.
    'plan, 2 to 2,048 CPUs': { exponent: 0.5, lastOverFirst: 4 },
    'plan, 1 to 64 NUMA nodes': { exponent: 1, lastOverFirst: 8 },
    'plan, 1 to 64 containers': { exponent: 1.1, lastOverFirst: 96 },
    'plan, 0 to 512 devices': { exponent: 0.5, lastOverFirst: 4 },
    'plan, 0 to 32 foreign owners': FLAT,
    'take, 2 to 2,048 CPUs': { exponent: 0.5, lastOverFirst: 24 },
    'take, 1 to 64 NUMA nodes': { exponent: 1, lastOverFirst: 2 },
  },
  idle: each(['simulated', 'simulated, change', 'this machine', 'this machine, change'], { wakeUps: 0.03 }),
  // Missed: see first.
  life: {
    import: { ratio: 1.15 },
    pin: { ratio: 1.4, moreCalls: 400 },
    'numalign run -- node app': { ratio: 2.3 },
    'numalign --version': { ratio: 1.3 },
  },
  // Missed in code that is not compiled yet.
  lines: { cold: { lineOfTenE: us(15) }, warm: { lineOfTenE: us(15) } },
  loop: {
    // Missed: what is read under the lock is read in one turn.
    'open, 1,000 grants': { maxOverNs: 5e6 },
    'commit that writes the state’s file whole, 512 grants': { cpuE: ms(5) },
    'commit that writes the owner’s file whole, 512 grants': { cpuE: ms(5) },
  },
  // Half a byte per plan counts as nothing: any run leaves something behind, such as compiled code.
  memory: { 'plans, 2 nodes': { retainedHeap: 0.5, retainedExternal: 0.5 } },
  merge: {
    '8 nodes x 4 lists': { ratio: 200 },
    '2 nodes x 2 lists': { ratio: 50 },
    // 150 ns per hint.
    'hint-merge-n8-r4-k1, hint objects': { ratio: 1500, hintE: us(0.15) },
    'hint-merge-n8-r4-k4, hint objects': { hintE: us(0.15) },
    'hint-merge-n2-r2-k1, hint objects': { ratio: 100, hintE: us(0.15) },
  },
  open: {
    // Missed: each grant on record is parsed and checked.
    'open, 1,000 grants': { cpuE: ms(30) },
    // Missed: each owner's file is opened and its lock looked at.
    'open, 4,096 owners': { cpuE: ms(60) },
    'numalign status, 1,000 grants': { cpuE: ms(120) },
  },
  packing: packing(),
  // Half as much again as the system calls.
  pin: each(['the same mask', 'another mask'], { ratio: 1.5 }),
  plan: {
    // Missed: an answer has 6 kB.
    '2 nodes': { ratio: 1000, bytes: 2048 },
    '2 nodes, prepared, nothing changed': { ratio: 400, bytes: 2048 },
    '8 nodes': { ratio: 3000 },
    '34 nodes, 2 with CPUs': { ratio: us(200), inexact: 0 },
    '64 nodes': { ratio: ms(1), inexact: 0 },
  },
  repacking: each(['8 x 16, none', '8 x 16, 1 move', '8 x 16, 2 moves', '8 x 16 in whole cores, 2 moves'], {
    ratio: ms(10),
    inexact: 0,
  }),
  take: {
    'cpu-take-packed-8numa-512-64': { ratio: 1000 },
    'cpu-take-packed-2s128-2': { ratio: 150 },
    'cpu-take-distributed-8numa-512-64': { ratio: 1500 },
  },
};

/** `1 grant`, `64 grants` */
export function counted(grants) {
  return `${grants.toLocaleString('en')} grant${grants === 1 ? '' : 's'}`;
}

function durable(machine, where, { alone, foreign }) {
  const rows = GRANTS.flatMap((grants) => [
    [`admit, ${machine}, ${counted(grants)}, ${where}`, alone],
    [`admit after a foreign commit, ${machine}, ${counted(grants)}, ${where}`, foreign],
  ]);
  return Object.fromEntries(rows);
}

// What moves can reach: with GPUs on both nodes none gain 3 %, and of *cluster* many rejections are
// fragmented where no moves help.
function packing() {
  const rows = ['2 x 48, GPUs on both', '2 x 48, GPUs on one', '8 x 16'].flatMap((machine) =>
    ['cluster', 'services', 'medium'].map((mix) => [
      `${machine}, ${mix}, 0.9: joint, 2 moves`,
      {
        ...{ avoidableRatio: 0.25, moves: 0.1 },
        ...(mix !== 'cluster' && { fragmentedRatio: 0.25 }),
        ...(machine !== '2 x 48, GPUs on both' && { gainShare: { least: 0.03 } }),
      },
    ]),
  );
  return Object.fromEntries(rows);
}

// How far above its target a figure may be if a busy machine checks it: a part of the target, and a
// constant. System calls are counted, and do not vary.
const TOLERANCES = {
  default: { part: 0.25 },
  calls: { part: 0 },
  bytes: { part: 0.05 },
  // 0.02 above a flat one, a tenth above 1.
  exponent: { part: 0.085, plus: 0.016 },
  lastOverFirst: { part: 0.1 },
  wakeUps: { plus: 0.1 },
  gainShare: { plus: 0.005 },
  retainedHeap: { plus: 1 },
  retainedExternal: { plus: 1 },
  p99OverNs: { plus: 1e6 },
  maxOverNs: { plus: 1e6 },
};

const toleranceOf = (member) => ({ part: 0, plus: 0, ...(TOLERANCES[member] ?? TOLERANCES.default) });

// An estimate is judged by its mean. A value that is not a number misses.
function isMet(value, goal, { part, plus }) {
  const number = value?.mean ?? value;
  return goal.least === undefined
    ? number <= goal * (1 + part) + plus
    : number >= goal.least * (1 - part) - plus;
}

const EXACT = { part: 0, plus: 0 };

/**
 * The members of a row that miss their targets. A member that is not a number misses.
 * @param isTolerant whether a value slightly above is accepted
 */
export function missedMembers(row, targets, isTolerant) {
  return Object.entries(targets)
    .filter(([member, goal]) => !isMet(row[member], goal, isTolerant ? toleranceOf(member) : EXACT))
    .map(([member]) => member);
}

/** The rows of a scenario that have targets and were not measured; empty if it was skipped. */
export function unmeasuredRows(scenario, rows, targets = TARGETS) {
  if (rows.some(({ skipped }) => skipped !== undefined)) return [];
  const names = new Set(rows.map(({ name }) => name));
  return Object.keys(targets[scenario] ?? {}).filter((name) => !names.has(name));
}

/** The row with its targets and whether it meets them; unchanged if there are none. */
export function judged(scenario, row, { targets = TARGETS, isTolerant = false } = {}) {
  const rowTargets = targets[scenario]?.[row.name];
  if (rowTargets === undefined || row.code !== undefined || row.skipped !== undefined) return row;
  const missed = missedMembers(row, rowTargets, isTolerant);
  if (missed.length === 0) return { ...row, targets: rowTargets, met: true };
  return { ...row, targets: rowTargets, met: false, missed };
}
