// Opening a folder with many grants or many owners in a new process, and showing it.
import { execFileSync } from 'node:child_process';
import { linkSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { native } from '../dist-test/lib/base/native.js';
import { DEFAULT_SETTINGS } from '../dist-test/lib/decision/machine-settings.js';
import { OwnOwner } from '../dist-test/lib/state/owners/own-owner.js';
import { lowerQuartileOf, medianOf } from './support/measure.mjs';
import { MACHINES, newNode } from './support/nodes.mjs';
import { emptyNow } from './support/rounds.mjs';
import { stateParents } from './support/state-parents.mjs';
import { USAGE } from './support/yardstick.mjs';

export const description =
  'openManager in a new process, and `numalign status`: with 1,000 grants on record, with 4,096 living owners, and with 15,000 empty files among theirs';
export const explanation = `
CPU time of all threads, the median; \`cpuE\` is the lower quartile. \`openManager\` is timed in a
new process that has loaded the package and knows the machine, \`numalign status\` from start to
end. The owners hold no grants. The opener removes the empty files.`;

const GRANTS = 1000;
const OWNERS = 4096;
const STRAYS = 15_000;
const RUNS = 12;
const [OPENER, CLI] = ['support/opener.mjs', '../packages/cli/dist/main.cjs'].map((name) =>
  fileURLToPath(new URL(name, import.meta.url)),
);

/** Living owners, as many processes would be. Closing them ends them. */
function ownersIn(stateDir) {
  const folder = native.Folder.open(join(stateDir, 'owners'), false, 0o700, -1);
  const bootId = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  const header = { bootId, generation: 1, settings: DEFAULT_SETTINGS };
  return Array.from({ length: OWNERS }, () => new OwnOwner(folder, stateDir, header));
}

const output = (program, ...args) => JSON.parse(execFileSync(program, args, { encoding: 'utf8' }));

const opening = (stateDir, machine) => () =>
  output(process.execPath, OPENER, JSON.stringify({ stateDir, machine }));

/** The same, after another program has made files there. */
const openingStrays = (stateDir, machine) => () => {
  const nameOf = (i) => join(stateDir, 'owners', `${String(i).padStart(8, '0')}-2222-4333-8444-555555555555`);
  writeFileSync(nameOf(0), '');
  for (let i = 1; i < STRAYS; i++) linkSync(nameOf(0), nameOf(i));
  return opening(stateDir, machine)();
};

const showing = (stateDir) => () => output(USAGE, process.execPath, CLI, 'status', '--state-dir', stateDir);

/** Rows of subjects in turns: `[name, run]`, where `run` returns the CPU time. */
function measured(subjects, rounds) {
  const found = subjects.map(() => []);
  for (let i = -1; i < rounds; i++) {
    const emptyNs = emptyNow();
    for (const [at, [, run]] of subjects.entries()) {
      const { cpuNs } = run();
      if (i >= 0) found[at].push({ cpuNs, cpuE: cpuNs / emptyNs });
    }
  }
  return subjects.map(([name], at) => ({
    name,
    cpuNs: medianOf(found[at].map(({ cpuNs }) => cpuNs)),
    cpuE: lowerQuartileOf(found[at].map(({ cpuE }) => cpuE)),
  }));
}

export async function run({ check }) {
  const { path } = stateParents().at(-1);
  const rounds = check ? 6 : RUNS;
  const { simulated } = MACHINES;
  const [full, real, empty] = [
    await newNode(path, simulated, GRANTS),
    // The record of a simulated machine is not shown as this machine's status.
    await newNode(path, null, GRANTS),
    await newNode(path, simulated, 0),
  ];
  const rows = [];
  try {
    const subjects = [
      ['open, 1,000 grants', opening(full.stateDir, simulated)],
      ['numalign status, 1,000 grants', showing(real.stateDir)],
    ];
    rows.push(...measured(subjects, rounds));
    const strays = ['open, 15,000 empty files', openingStrays(empty.stateDir, simulated)];
    rows.push(...measured([strays], rounds));
  } finally {
    // A manager would hear of each owner's end.
    for (const { close } of [full, real, empty]) close();
  }
  // Now, since each process reads all locks of the machine.
  const owners = ownersIn(empty.stateDir);
  try {
    rows.push(...measured([['open, 4,096 owners', opening(empty.stateDir, simulated)]], rounds));
    return rows;
  } finally {
    for (const owner of owners) owner.close();
  }
}
