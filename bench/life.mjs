// What a program costs from its start to its end, by how it comes to its CPU; and the commands of
// the command line.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { openManager } from '../dist/index.js';
import { medianOf } from './support/measure.mjs';
import { stateParents } from './support/state-parents.mjs';
import { callsUntilEnd } from './support/strace-text.mjs';
import { USAGE } from './support/yardstick.mjs';

export const description =
  'a program’s whole life, by how it comes to its CPU, and commands: CPU time, system calls and peak memory beside the same without numalign';
export const explanation = `
The program (\`app\`) does nothing else. *CPU* is user and system time from wait4(2), *calls* all
system calls of all threads, by \`strace -f\`, *peak* the largest resident set. Medians; *ratio* is
the median of the rounds, in which all take turns. State is in memory, in a folder with settings on
record. Programs start without settings of Node (\`NODE_OPTIONS\`, \`NODE_EXTRA_CA_CERTS\`).

What \`numalign run\` leaves running waits for the end of the program, and gives back what others may
use: nothing alone, or the CPUs to a *member*, a process in the shared pool.`;

const CLI = '../packages/cli/dist/main.cjs';
const [APP, NUMALIGN] = ['support/program.mjs', CLI].map((name) =>
  fileURLToPath(new URL(name, import.meta.url)),
);
const TRACES = 3;

/**
 * The programs, each with its name and what it is compared with. `left`: the name of what it leaves
 * running.
 */
function subjectsIn(stateDir, sharedDir) {
  const node = (...args) => [process.execPath, ...args];
  const run = (folder) => {
    const options = ['--cpus', '1', '--silent', '--state-dir', folder];
    return node(NUMALIGN, 'run', ...options, '--', ...node(APP));
  };
  const [taskset, empty] = ['taskset -c 1 node app', 'node -e 0'];
  const [alone, beside] = ['numalign run -- node app', 'numalign run beside a member'];
  return [
    { name: taskset, command: ['taskset', '-c', '1', ...node(APP)], yardstick: taskset },
    { name: 'numactl -C 1 node app', command: ['numactl', '-C', '1', ...node(APP)], yardstick: taskset },
    { name: 'import', command: node(APP, 'import'), yardstick: taskset },
    { name: 'pin', command: node(APP, 'pin', stateDir), yardstick: taskset },
    { name: 'openManager, acquire, pin', command: node(APP, 'acquire', stateDir), yardstick: taskset },
    { name: alone, command: run(stateDir), yardstick: taskset, left: 'left by it' },
    { name: beside, command: run(sharedDir), yardstick: taskset, left: 'left by it beside a member' },
    { name: empty, command: node('-e', '0'), yardstick: empty },
    { name: 'numalign --version', command: node(NUMALIGN, '--version'), yardstick: empty },
    { name: 'numalign status', command: node(NUMALIGN, 'status', '--state-dir', stateDir), yardstick: empty },
  ].filter(({ command: [program] }) => spawnSync(program, ['--version']).error === undefined);
}

function started([program, ...args]) {
  const { status, stdout, stderr } = spawnSync(program, args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`${args.join(' ')} ended with ${status}: ${stderr}`);
  return stdout;
}

/** Its system calls, and those of what it leaves running, by a log of strace. */
function callsOf(command, log) {
  const counts = Array.from({ length: TRACES }, () => {
    started(['strace', '-f', '-o', log, ...command]);
    return callsUntilEnd(readFileSync(log, 'utf8'));
  });
  const median = (member) => medianOf(counts.map((each) => each[member]));
  return { calls: median('calls'), leftCalls: median('leftCalls') };
}

/** By name, the system calls of each subject; undefined without strace. */
function callsOfAll(subjects, log) {
  if (spawnSync('strace', ['-V']).error) return undefined;
  return new Map(subjects.map(({ name, command }) => [name, callsOf(command, log)]));
}

function rowsOf(subjects, rounds, calls) {
  const median = (of) => medianOf(rounds.map(of));
  const remark = calls ? {} : { remark: 'no calls: strace is not installed' };
  return subjects.flatMap(({ name, yardstick, left }) => {
    const row = (ofName, member, others) => ({
      name: ofName,
      cpuNs: median((round) => round.get(name)[member]),
      ratio: median((round) => round.get(name)[member] / round.get(yardstick).cpuNs),
      ...others,
      ...remark,
      yardstick,
    });
    const own = calls?.get(name);
    const more = own && { calls: own.calls, moreCalls: own.calls - calls.get(yardstick).calls };
    const peakBytes = median((round) => round.get(name).peakBytes);
    const rows = [row(name, 'cpuNs', { ...more, peakBytes })];
    if (left) rows.push(row(left, 'leftNs', own && { calls: own.leftCalls }));
    return rows;
  });
}

export async function run({ check }) {
  const parent = stateParents().at(-1).path;
  const [stateDir, sharedDir] = [0, 0].map(() => mkdtempSync(join(parent, 'numalign-bench-')));
  let member;
  try {
    (await openManager({ stateDir, reservedSystemCPUs: '0' })).close();
    // This process is the member.
    member = await openManager({ stateDir: sharedDir, reservedSystemCPUs: '0' });
    const subjects = subjectsIn(stateDir, sharedDir);
    const rounds = [];
    for (let i = -1; i < (check ? 7 : 15); i++) {
      const round = new Map(
        subjects.map(({ name, command }) => [name, JSON.parse(started([USAGE, ...command]))]),
      );
      if (i >= 0) rounds.push(round);
    }
    return rowsOf(subjects, rounds, callsOfAll(subjects, join(stateDir, 'calls')));
  } finally {
    member?.close();
    for (const folder of [stateDir, sharedDir]) rmSync(folder, { recursive: true });
  }
}
