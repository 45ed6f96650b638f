// Torture: processes that share a state folder acquire, pin, resize, hand on and release, and are
// stopped and killed at every step; a checker outside compares their reports, the state file and
// the kernel's masks.
//
//   npm run torture -- --seconds N --processes P --seed S [--disturbed] [--quiet] [--moves] [--changing]
//     [--package DIR ...]
//
// `--disturbed`: a third party works in the folder in every round, not only in some. `--quiet`:
// grants change settings of a kernel that is a folder tree, and nothing else is tried. `--moves`:
// only on a simulated machine, most operations have grants move. `--changing`: as `--moves`, with
// grants that grow and shrink, that change settings as above, and whose processes are busy; in half
// of the rounds a third party restores the folder and removes files. Ends with 1 if a promise was
// broken. The seed decides what agents do and where they fail; the machine decides how they
// interleave.
import { spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { chmodSync, mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { Group } from './group.mjs';
import { changingMachine, quietMachine, realMachine, simulatedMachine } from './machines.mjs';
import { freshSeed, parseOptions } from './options.mjs';
import { scratchFolder } from './scratch.mjs';
import { shimLibrary } from './shim.mjs';
import { canBeUsers } from './users.mjs';

const ROUND_SECONDS = 8;
// Enough for grants to get in each other's way.
const ROUND_SECONDS_OF_MOVES = 30;
const MAX_SHOWN = 20;

const given = parseOptions('test/torture/torture.mjs', {
  seconds: 20,
  processes: 8,
  seed: freshSeed(),
  pause: 4,
  disturbed: false,
  quiet: false,
  moves: false,
  changing: false,
});
shimLibrary();
const run = randomUUID();
const folder = mkdtempSync(join(realpathSync(tmpdir()), 'numalign-torture-'));
const memory = scratchFolder('torture');
// Agents of other users write there too.
for (const path of [folder, memory]) chmodSync(path, 0o755);
const canUnshare = process.getuid() === 0 && spawnSync('unshare', ['-pmf', 'true']).status === 0;

// The state folder of a process of this run.
function folderOf(pid) {
  try {
    const environment = readFileSync(`/proc/${pid}/environ`, 'latin1').split('\0');
    return environment
      .find((line) => line.startsWith('NUMALIGN_SHIM_FOLDER='))
      ?.slice('NUMALIGN_SHIM_FOLDER='.length);
  } catch {
    return undefined;
  }
}

const packages = given.packages.map((path) => resolve(path));
const settings = {
  seed: given.seed,
  packages,
  hasUsers: canBeUsers(packages),
  run,
  canUnshare,
  pause: given.pause,
  disturbed: given.disturbed,
  folderOf,
};
const machines = given.changing
  ? [changingMachine()]
  : given.quiet
    ? [quietMachine()]
    : given.moves
      ? [simulatedMachine(true)]
      : [realMachine(), simulatedMachine()].filter(Boolean);
const isOne = given.changing || given.quiet || given.moves;
// Half on each; the larger half on the one with more room.
const groups = machines.map((machine, i) => {
  const share = Math.max(
    2,
    i === machines.length - 1
      ? Math.ceil(given.processes / machines.length)
      : Math.floor(given.processes / machines.length),
  );
  const place = machine.isReal || isOne ? memory : folder;
  return new Group(machine, share, settings, join(place, machine.name), machine.isReal);
});

console.log(
  `torture: seed ${given.seed}, ${given.seconds} s, ${groups.map(({ machine, slots }) => `${slots.length} processes on the ${machine.name} machine`).join(', ')}`,
);
for (const path of settings.packages) console.log(`package ${path}`);
if (machines.length < 2 && !isOne) console.log('left out: the real machine, which has too few CPUs');
if (!canUnshare) console.log('left out: agents in pid namespaces of their own (that takes root and unshare)');

if (!settings.hasUsers)
  console.log('left out: agents of several users (that takes root, and packages that all can read)');

const roundSeconds = machines[0].hasMovesAbove ? ROUND_SECONDS_OF_MOVES : ROUND_SECONDS;
const end = Date.now() + given.seconds * 1000;
// On a busy machine a short run may end before the first grant: it gets more rounds.
const MOST_ROUNDS = 10;
const isAtWork = ({ machine, operations, counts }) =>
  counts.rounds >= MOST_ROUNDS ||
  (operations.get('acquire') > 0 && counts.holdings > 0 && !(machine.isQuiet && counts.snapshots === 0));
const isEnough = () => Date.now() >= end && groups.every(isAtWork);
while (!isEnough() && groups.every(({ violations }) => violations.length === 0)) {
  const isLate = Date.now() >= end;
  const left = isLate ? given.seconds : (end - Date.now()) / 1000;
  // No short last round.
  const seconds = left < 1.5 * roundSeconds ? left : roundSeconds;
  await Promise.all(groups.map((group) => group.round(seconds)));
}

const text = (map) =>
  [...map]
    .sort()
    .map(([name, n]) => `${name} ${n}`)
    .join(', ');
for (const { machine, operations, refusals, counts, failpoints, slots, features } of groups) {
  const off = [...features].filter(([, has]) => !has).map(([name]) => name);
  const { known, hit, total } = failpoints.counts;
  console.log(`\n${machine.name} machine, ${counts.rounds} rounds`);
  console.log(`  operations: ${text(operations)}`);
  console.log(`  refused: ${text(refusals)}`);
  console.log(`  off, since the package has them not: ${off.join(', ') || 'none'}`);
  console.log(
    `  processes ${counts.started}, killed ${counts.killed}, stopped ${counts.stopped}, children that outlived them ${counts.orphans}, disturbances of the folder ${counts.disturbed}, rounds of several users ${counts.shared}, masks looked at in the end ${counts.rested}`,
  );
  console.log(
    `  died at failpoints ${total}, ${hit} of ${known} different ones${hit < known ? `; not yet: ${failpoints.never.slice(0, 8).join(', ')}${known - hit > 8 ? ' ...' : ''}` : ''}`,
  );
  if (counts.moves > 0)
    console.log(`  moves ${counts.moves}, deaths at their steps: ${text(failpoints.ofMoves)}`);
  console.log(
    `  checked: ${counts.holdings} holdings, ${counts.states} states, ${counts.snapshots} snapshots of the kernel's ${machine.isQuiet ? 'settings' : 'masks'}`,
  );
  console.log(
    `  by process: operations ${slots.map((slot) => slot.operations).join(' ')}; acquired ${slots.map((slot) => slot.acquired).join(' ')}; longest, ms ${slots.map((slot) => Math.round(slot.longest / 1e6)).join(' ')}`,
  );
}

const violations = groups.flatMap((group) => group.violations);
console.log(`\n${violations.length} violations`);
for (const violation of violations.slice(0, MAX_SHOWN)) console.log(`VIOLATION ${violation}`);
if (violations.length > 0) {
  console.log(
    `again: npm run torture -- --seconds ${given.seconds} --processes ${given.processes} --seed ${given.seed}${given.quiet ? ' --quiet' : ''}${given.moves ? ' --moves' : ''}${given.changing ? ' --changing' : ''}`,
  );
  console.log(`the state folders and histories are in ${folder}`);
  console.log(`the state folders and histories are in ${memory}`);
} else {
  for (const path of [folder, memory]) rmSync(path, { recursive: true });
}
process.exit(violations.length > 0 ? 1 : 0);
