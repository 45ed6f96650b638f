// What it costs a process to follow the commits of others: each is a line of the state's file.
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { lowerQuartileOf, medianOf } from './support/measure.mjs';
import { MACHINES, newNode } from './support/nodes.mjs';
import { emptyNow } from './support/rounds.mjs';
import { stateParents } from './support/state-parents.mjs';

export const description =
  'CPU time of a plan in a process that is no, 10 and 1,000 commits of others behind, and of each line';
export const explanation = `
*Line of ten* is the difference between 10 and none, *line* between 1,000 and 10, each for one
line. Lower quartiles. 1,000 grants are on record, so that a file takes 1,000 lines before another
one replaces it. *Cold*: the first plan of a process after others' commits. *Warm*: after 2,000
lines.`;

const COUNTS = [0, 10, 1000];
const WARM_UP = [1000, 1000];
const WARM = [...COUNTS, ...COUNTS];
const FOLLOWER = fileURLToPath(new URL('support/follower.mjs', import.meta.url));
const MACHINE = MACHINES.simulated;

/** The CPU times of a new process, with how many commits it was behind. */
function timesOf(stateDir, first) {
  const steps = [first, ...WARM_UP, ...WARM];
  const order = JSON.stringify({ stateDir, machine: MACHINE, steps });
  const times = JSON.parse(execFileSync(process.execPath, [FOLLOWER, order], { encoding: 'utf8' }));
  const kindOf = (i) => (i === 0 ? 'cold' : i > WARM_UP.length ? 'warm' : 'neither');
  return times.map((cpuNs, i) => ({ cpuNs, commits: steps[i], kind: kindOf(i) }));
}

export async function run({ check }) {
  const { stateDir, close } = await newNode(stateParents().at(-1).path, MACHINE, 1000);
  const found = [];
  const emptyNs = [];
  try {
    for (let i = 0; i < (check ? 1 : 3); i++) {
      emptyNs.push(emptyNow());
      for (const first of COUNTS) found.push(...timesOf(stateDir, first));
    }
  } finally {
    close();
  }
  return ['cold', 'warm'].map((name) => {
    const ofKind = found.filter(({ kind }) => kind === name);
    const [noneNs, tenNs, thousandNs] = COUNTS.map((count) =>
      lowerQuartileOf(ofKind.filter(({ commits }) => commits === count).map(({ cpuNs }) => cpuNs)),
    );
    const [lineOfTenNs, lineNs] = [(tenNs - noneNs) / 10, (thousandNs - tenNs) / 990];
    const lineOfTenE = lineOfTenNs / medianOf(emptyNs);
    return { name, noneNs, tenNs, thousandNs, lineOfTenNs, lineNs, lineOfTenE };
  });
}
