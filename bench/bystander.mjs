// What a process with only an open manager notices of others' commits: its CPU time, how busy its
// event loop is, and how late its timers are, compared with the same process without commits.
import { lowerQuartileOf, medianOf } from './support/measure.mjs';
import { COMMITTER, MACHINES, newNode } from './support/nodes.mjs';
import { startPeer } from './support/peers.mjs';
import { emptyNow } from './support/rounds.mjs';
import { stateParents } from './support/state-parents.mjs';
import { counted } from './support/targets.mjs';

export const description =
  'a process with an open manager while another commits 50 times a second: CPU time a commit, and delays of its event loop beside the same without commits';
export const explanation = `
*CPU* is the CPU time of the whole process for each commit, less what it takes without commits;
*loop* is the share of time that its event loop is busy. *p50*, *p99* and *max* are of
\`monitorEventLoopDelay\` (1 ms of them is its timer's), *control* the same without commits, *over*
the difference (lower quartile of three rounds). *Listener*: the process listens to \`change\`. *Bare
watch*: it only watches the file that commits change.`;

const GRANTS = [1, 512];
const PHASE_MS = 1500;
const PACE_MS = 20;
// Longer than a look is delayed.
const SETTLE_MS = 1050;
const [WATCH, LISTENER] = ['bare watch', 'listener'];
const KINDS = ['no listener', LISTENER];

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// What the bystander notices during a phase in which `commit` is called repeatedly.
async function phase(bystander, isDelay, commit) {
  await bystander.call('begin', { isDelay });
  const begin = performance.now();
  let commits = 0;
  while (performance.now() - begin < PHASE_MS) {
    const next = performance.now() + PACE_MS;
    if (commit) {
      await commit();
      commits++;
    }
    const left = next - performance.now();
    if (left > 0) await sleep(left);
  }
  // Work that it has not reached yet also belongs to these commits.
  await sleep(SETTLE_MS);
  return { ...(await bystander.call('end')), commits };
}

// `what`: the process has a manager, perhaps with a listener, or only a watch of the file that does
// nothing, which is the least that hearing of a commit takes.
async function measure(machineName, machine, grants, what, { path, rounds }) {
  // Has the grants, and reacts to nothing.
  const node = await newNode(path, machine, grants, COMMITTER);
  const committer = await startPeer({ stateDir: node.stateDir, machine, options: COMMITTER });
  const bystander = await startPeer({
    ...{ stateDir: node.stateDir, machine },
    ...{ isOpen: what !== WATCH, isWatch: what === WATCH, isListener: what === LISTENER },
  });
  const commit = () => committer.call('commit');
  const found = [];
  try {
    await phase(bystander, true, commit);
    for (let i = 0; i < rounds; i++) {
      const quiet = await phase(bystander, false);
      const busy = await phase(bystander, false, commit);
      const quietDelays = await phase(bystander, true);
      const busyDelays = await phase(bystander, true, commit);
      const cpuNs = Math.max(0, busy.cpuNs - quiet.cpuNs) / busy.commits;
      found.push({
        cpuNs,
        cpuE: cpuNs / emptyNow(),
        loopShare: busy.loopShare,
        delays: busyDelays.delays,
        control: quietDelays.delays,
      });
    }
  } finally {
    await bystander.close();
    await committer.close();
    node.close();
  }
  const low = (of) => lowerQuartileOf(found.map(of));
  const median = (of) => medianOf(found.map(of));
  return {
    name: `${machineName}, ${counted(grants)}, ${what}`,
    cpuNs: low(({ cpuNs }) => cpuNs),
    cpuE: low(({ cpuE }) => cpuE),
    loopShare: low(({ loopShare }) => loopShare),
    ...Object.fromEntries(
      ['p50', 'p99', 'max'].flatMap((at) => [
        [`${at}Ns`, median(({ delays }) => delays[at])],
        [`${at}ControlNs`, median(({ control }) => control[at])],
      ]),
    ),
    p99OverNs: low(({ delays, control }) => delays.p99 - control.p99),
    maxOverNs: low(({ delays, control }) => delays.max - control.max),
  };
}

export async function run({ check }) {
  const { path } = stateParents().at(-1);
  const rows = [];
  for (const [name, machine] of Object.entries(MACHINES)) {
    for (const grants of check ? [512] : GRANTS) {
      for (const what of KINDS) rows.push(await measure(name, machine, grants, what, { path, rounds: 3 }));
    }
  }
  const [name, machine] = Object.entries(MACHINES)[0];
  rows.push(await measure(name, machine, GRANTS.at(-1), WATCH, { path, rounds: 3 }));
  return rows;
}
