// How long the event loop is blocked by work that is O(state) once: opening a folder with a
// thousand grants, and writing the files of the state and the owner whole.
import { execFileSync } from 'node:child_process';
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { lowerQuartileOf, medianOf } from './support/measure.mjs';
import { exclusivePod, MACHINES, newNode } from './support/nodes.mjs';
import { cpuOf, emptyNow } from './support/rounds.mjs';
import { stateParents } from './support/state-parents.mjs';

export const description =
  'what stops the event loop: the longest turn of openManager, and commits that write files whole';
export const explanation = `
*Max* is the longest time between two turns of the event loop while \`openManager\` opens a folder
with 1,000 grants in a new process; *control* the same over 60 ms without work; *max over* the
difference (lower quartile). A commit that writes a file whole is one turn on tmpfs: its CPU time,
the median.`;

const OPENER = fileURLToPath(new URL('support/loop-opener.mjs', import.meta.url));
const RUNS = 12;
// More than a line of an owner's file has.
const LINE_BYTES = 20_000;
// Detects a build that never writes them whole.
const MOST_COMMITS = 5_000;

const rowOf = (name, found) => ({
  name,
  maxNs: medianOf(found.map(({ maxNs }) => maxNs)),
  maxControlNs: medianOf(found.map(({ controlNs }) => controlNs)),
  maxOverNs: lowerQuartileOf(found.map(({ maxNs, controlNs }) => maxNs - controlNs)),
});

async function opens(path, runs) {
  const machine = MACHINES.simulated;
  const node = await newNode(path, machine, 1000);
  const order = JSON.stringify({ stateDir: node.stateDir, machine });
  try {
    return Array.from({ length: runs }, () =>
      JSON.parse(execFileSync(process.execPath, [OPENER, order], { encoding: 'utf8' })),
    );
  } finally {
    node.close();
  }
}

// The CPU time of commits, by which files they write whole. With files in memory a commit is one
// turn of the event loop; the length of a turn on a busy machine would say less.
async function wholeWrites(path, runs) {
  const { stateDir, manager, close } = await newNode(path, MACHINES.simulated, 512);
  const file = join(stateDir, 'state.json');
  const owners = join(stateDir, 'owners');
  const ownerFile = join(owners, readdirSync(owners)[0]);
  const times = { state: [], owner: [] };
  let [inode, size] = [statSync(file).ino, statSync(ownerFile).size];
  const commit = async (action) => {
    const cpuNs = await cpuOf(action);
    const [inodeNow, sizeNow] = [statSync(file).ino, statSync(ownerFile).size];
    // A release only removes a line.
    if (inodeNow !== inode) times.state.push(cpuNs);
    else if (sizeNow < size - LINE_BYTES) times.owner.push(cpuNs);
    [inode, size] = [inodeNow, sizeNow];
  };
  try {
    for (
      let remaining = MOST_COMMITS * runs;
      Math.min(times.state.length, times.owner.length) < runs;
      remaining--
    ) {
      if (remaining === 0) throw new Error(`no ${runs} files were written whole`);
      let uid;
      await commit(async () => ({ uid } = await manager.admit(exclusivePod())));
      await commit(() => manager.release(uid));
    }
  } finally {
    close();
  }
  const emptyNs = emptyNow();
  return Object.entries(times).map(([what, found]) => {
    const cpuNs = medianOf(found);
    return { name: `commit that writes the ${what}’s file whole, 512 grants`, cpuNs, cpuE: cpuNs / emptyNs };
  });
}

export async function run({ check }) {
  const { path } = stateParents().at(-1);
  const runs = check ? 6 : RUNS;
  return [rowOf('open, 1,000 grants', await opens(path, runs)), ...(await wholeWrites(path, runs))];
}
