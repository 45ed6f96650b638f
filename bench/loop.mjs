// How long the event loop is stopped at most by what is O(state) once: opening a folder with a
// thousand grants, and writing the state's and the owner's file whole.
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { longestIdleTurn, longestTurn } from './support/loop-delay.mjs';
import { lowerQuartileOf, medianOf } from './support/measure.mjs';
import { exclusivePod, MACHINES, newNode } from './support/nodes.mjs';
import { stateParents } from './support/state-parents.mjs';

export const description =
  'the longest turn of the event loop: openManager, and commits that write files whole';

const OPENER = fileURLToPath(new URL('support/loop-opener.mjs', import.meta.url));
const RUNS = 12;
// Each file is written whole once and more in so many.
const COMMITS = 1000;

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

async function commits(path, grants, runs) {
  const { manager, close } = await newNode(path, MACHINES.simulated, grants);
  // A commit where files are in memory is done at once: others have their turn in between.
  const change = async () => {
    for (let i = 0; i < COMMITS / 2; i++) {
      const { uid } = await manager.admit(exclusivePod());
      await new Promise(setImmediate);
      await manager.release(uid);
      await new Promise(setImmediate);
    }
  };
  const found = [];
  try {
    await change();
    for (let i = 0; i < runs; i++) {
      const begin = performance.now();
      const maxNs = await longestTurn(change);
      found.push({ maxNs, controlNs: await longestIdleTurn(performance.now() - begin) });
    }
    return found;
  } finally {
    close();
  }
}

export async function run({ check }) {
  const { path } = stateParents().at(-1);
  const runs = check ? 6 : RUNS;
  return [
    rowOf('open, 1,000 grants', await opens(path, runs)),
    rowOf('1,000 commits, 1 grant', await commits(path, 1, runs)),
    rowOf('1,000 commits, 512 grants', await commits(path, 512, runs)),
  ];
}
