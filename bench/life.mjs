// What a program costs from its start to its end, by how it comes to its CPU; and the commands of
// the command line.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { openManager } from '../dist/index.js';
import { medianOf } from './support/measure.mjs';
import { stateParents } from './support/state-parents.mjs';
import { USAGE } from './support/yardstick.mjs';

export const description =
  'a program’s whole life, by how it comes to its CPU, and commands: CPU time, system calls and peak memory beside the same without numalign';
export const explanation = `
The program (\`app\`) does nothing else. *CPU* is user and system time from wait4(2), *calls* all
system calls of all threads, by \`strace -f -c\`, *peak* the largest resident set. Medians;
*ratio* is the median of the rounds, in which all take turns. State is in memory, in a folder with
settings on record.`;

const CLI = '../packages/cli/dist/main.cjs';
const [APP, NUMALIGN] = ['support/program.mjs', CLI].map((name) =>
  fileURLToPath(new URL(name, import.meta.url)),
);
const TRACES = 3;

/** By their names: the programs, and what each is compared with. */
function subjectsIn(stateDir) {
  const node = (...args) => [process.execPath, ...args];
  const run = ['run', '--cpus', '1', '--silent', '--state-dir', stateDir, '--'];
  const [taskset, empty] = ['taskset -c 1 node app', 'node -e 0'];
  return [
    [taskset, ['taskset', '-c', '1', ...node(APP)], taskset],
    ['numactl -C 1 node app', ['numactl', '-C', '1', ...node(APP)], taskset],
    ['import', node(APP, 'import'), taskset],
    ['pin', node(APP, 'pin', stateDir), taskset],
    ['openManager, acquire, pin', node(APP, 'acquire', stateDir), taskset],
    ['numalign run -- node app', node(NUMALIGN, ...run, ...node(APP)), taskset],
    [empty, node('-e', '0'), empty],
    ['numalign --version', node(NUMALIGN, '--version'), empty],
    ['numalign status', node(NUMALIGN, 'status', '--state-dir', stateDir), empty],
  ].filter(([, [program]]) => spawnSync(program, ['--version']).error === undefined);
}

function started([program, ...args]) {
  const { status, stdout, stderr } = spawnSync(program, args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`${args.join(' ')} ended with ${status}: ${stderr}`);
  return stdout;
}

/** The number of its system calls, which strace writes to a file. */
function callsOf(command, log) {
  const counts = Array.from({ length: TRACES }, () => {
    started(['strace', '-f', '-c', '-o', log, ...command]);
    const [, calls] = /^ *100\.00 +\S+ +(?:\d+ +)?(\d+) .*total$/m.exec(readFileSync(log, 'utf8'));
    return Number(calls);
  });
  return medianOf(counts);
}

/** By name, how many system calls a subject makes, and how many more than its yardstick. */
function callsOfAll(subjects, log) {
  if (spawnSync('strace', ['-V']).error) {
    return new Map(subjects.map(([name]) => [name, { remark: 'no calls: strace is not installed' }]));
  }
  const counts = new Map(subjects.map(([name, command]) => [name, callsOf(command, log)]));
  return new Map(
    subjects.map(([name, , yardstick]) => {
      const calls = counts.get(name);
      return [name, { calls, moreCalls: calls - counts.get(yardstick) }];
    }),
  );
}

export async function run({ check }) {
  const stateDir = mkdtempSync(join(stateParents().at(-1).path, 'numalign-bench-'));
  try {
    (await openManager({ stateDir, reservedSystemCPUs: '0' })).close();
    const subjects = subjectsIn(stateDir);
    const rounds = [];
    for (let i = -1; i < (check ? 7 : 15); i++) {
      const round = new Map(
        subjects.map(([name, command]) => [name, JSON.parse(started([USAGE, ...command]))]),
      );
      if (i >= 0) rounds.push(round);
    }
    const median = (of) => medianOf(rounds.map(of));
    const calls = callsOfAll(subjects, join(stateDir, 'calls'));
    return subjects.map(([name, , yardstick]) => ({
      name,
      cpuNs: median((round) => round.get(name).cpuNs),
      ratio: median((round) => round.get(name).cpuNs / round.get(yardstick).cpuNs),
      ...calls.get(name),
      peakBytes: median((round) => round.get(name).peakBytes),
      yardstick,
    }));
  } finally {
    rmSync(stateDir, { recursive: true });
  }
}
