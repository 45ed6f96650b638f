// Opening a folder with a thousand grants in a new process, and showing it.
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { ownTime } from './support/machine-load.mjs';
import { lowerQuartileOf } from './support/measure.mjs';
import { MACHINES, newNode } from './support/nodes.mjs';
import { emptyNow, Rounds } from './support/rounds.mjs';
import { stateParents } from './support/state-parents.mjs';

export const description = 'openManager in a new process, and `numalign status`, with 1,000 grants on record';
export const explanation = `
\`openManager\` is timed in a new process that has loaded the package and knows the machine,
\`numalign status\` from start to end. Targets judge the CPU time of all threads.`;

const GRANTS = 1000;
const RUNS = 12;
const [OPENER, STATUS, EMPTY] = [
  'support/opener.mjs',
  '../packages/cli/dist/main.cjs',
  'support/empty-module.mjs',
].map((name) => fileURLToPath(new URL(name, import.meta.url)));

function started(args) {
  const cpu = ownTime();
  const begin = performance.now();
  const { status, stdout, stderr } = spawnSync(process.execPath, args, {
    encoding: 'utf8',
    maxBuffer: 2 ** 28,
  });
  const took = (performance.now() - begin) * 1e6;
  if (status !== 0) throw new Error(`${args.join(' ')} ended with ${status}: ${stderr}`);
  return { took, cpuNs: ownTime() - cpu, stdout };
}

export async function run({ check }) {
  const { path, fileSystem } = stateParents().at(-1);
  // The record of a simulated machine is not shown as this machine's status.
  const simulated = await newNode(path, MACHINES.simulated, GRANTS);
  const real = await newNode(path, null, GRANTS).catch((error) => simulated.close() ?? Promise.reject(error));
  const [opens, statuses] = [new Rounds(), new Rounds()];
  const cpus = { opens: [], statuses: [] };
  try {
    const order = JSON.stringify({ stateDir: simulated.stateDir, machine: MACHINES.simulated });
    for (let i = -1; i < (check ? 6 : RUNS); i++) {
      const emptyNs = emptyNow();
      const opened = JSON.parse(started([OPENER, order]).stdout);
      const empty = started([EMPTY]).took;
      const shown = started([STATUS, 'status', '--state-dir', real.stateDir]);
      if (i < 0) continue;
      opens.add([opened.ns], emptyNs, [empty]);
      statuses.add([shown.took], emptyNs, [empty]);
      cpus.opens.push(opened.cpuNs / emptyNs);
      cpus.statuses.push(shown.cpuNs / emptyNs);
    }
  } finally {
    real.close();
    simulated.close();
  }
  // Other processes disturb a starting process most: CPU time is what it costs.
  const about = (all) => {
    const cpuE = lowerQuartileOf(all);
    const remark = `CPU time ${Math.round(cpuE).toLocaleString('en')} E; ${fileSystem}`;
    return { yardstick: 'empty module', cpuE, remark };
  };
  return [
    opens.row('open, 1,000 grants', about(cpus.opens)),
    statuses.row('numalign status, 1,000 grants', about(cpus.statuses)),
  ];
}
