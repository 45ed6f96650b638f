// Opening a folder with many grants or many owners in a new process, and showing it.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
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
  'openManager in a new process, and `numalign status`: with 1,000 grants on record, and with 4,096 living owners';
export const explanation = `
CPU time of all threads, the median; \`cpuE\` is the lower quartile. \`openManager\` is timed in a
new process that has loaded the package and knows the machine, \`numalign status\` from start to
end. The owners hold no grants.`;

const GRANTS = 1000;
const OWNERS = 4096;
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

/** By the names of rows: what runs and prints its CPU time. */
async function subjectsIn(path, close) {
  const nodeOf = async (machine, grants) => {
    const node = await newNode(path, machine, grants);
    close.push(() => node.close());
    return node.stateDir;
  };
  const machine = MACHINES.simulated;
  const open = (stateDir) => () => output(process.execPath, OPENER, JSON.stringify({ stateDir, machine }));
  // No manager is open there that would hear of each end.
  const { stateDir: crowded, close: closeCrowded } = await newNode(path, machine, 0);
  closeCrowded();
  for (const owner of ownersIn(crowded)) close.push(() => owner.close());
  // The record of a simulated machine is not shown as this machine's status.
  const real = await nodeOf(null, GRANTS);
  return [
    ['open, 1,000 grants', open(await nodeOf(machine, GRANTS))],
    ['open, 4,096 owners', open(crowded)],
    [
      'numalign status, 1,000 grants',
      () => output(USAGE, process.execPath, CLI, 'status', '--state-dir', real),
    ],
  ];
}

export async function run({ check }) {
  const { path, fileSystem } = stateParents().at(-1);
  const close = [];
  try {
    const subjects = await subjectsIn(path, close);
    const found = subjects.map(() => []);
    for (let i = -1; i < (check ? 6 : RUNS); i++) {
      const emptyNs = emptyNow();
      for (const [at, [, started]] of subjects.entries()) {
        const { cpuNs } = started();
        if (i >= 0) found[at].push({ cpuNs, cpuE: cpuNs / emptyNs });
      }
    }
    return subjects.map(([name], at) => ({
      name,
      cpuNs: medianOf(found[at].map(({ cpuNs }) => cpuNs)),
      cpuE: lowerQuartileOf(found[at].map(({ cpuE }) => cpuE)),
      remark: fileSystem,
    }));
  } finally {
    for (const each of close) each();
  }
}
