// Admitting and releasing, durably, compared with the writes alone, in the same folder: on a
// simulated machine and on this one, alone and after another process has committed.
import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { kubeletCost, ownInput, prepared } from './support/inputs.mjs';
import { lowerQuartileOf, medianOf } from './support/measure.mjs';
import { COMMITTER, exclusivePod, MACHINES, newNode } from './support/nodes.mjs';
import { startPeer } from './support/peers.mjs';
import { cpuOf, emptyNow, Rounds, timeOf } from './support/rounds.mjs';
import { stateParents } from './support/state-parents.mjs';
import { counted } from './support/targets.mjs';
import { yardstick } from './support/yardstick.mjs';

export const description =
  'Manager.admit and release, durable: on disk and tmpfs, with 1, 64 and 512 grants on record, alone and after a foreign commit';
export const explanation = `
Admits and releases one CPU: first with the folder to itself, then each time after another process
has committed. That process has \`sharedMember: false\` and reconciles nothing, so it adds no time
of its own. *Writes*: what an admission writes, replayed in C: the claim in the owner's file, the
line of the change, \`fdatasync\` on a disk, the line's copy, the generation. *Of kubelet*
compares the CPU time with the kubelet's, for its checkpoints.`;

const GRANTS = [1, 64, 512];
const CALLS = 5;
const MOST_ROUNDS = 40;

/** The lines that an admission has just written: the claim, with the end, and the change. */
function linesOf(stateDir) {
  const lines = (...path) => readFileSync(join(stateDir, ...path), 'utf8').match(/.*\n/g);
  const [owner] = readdirSync(join(stateDir, 'owners'));
  return [lines('owners', owner).slice(-2).join(''), lines('state.json').at(-1)].map((text) =>
    Buffer.from(text),
  );
}

/** Rounds of an admission and its release, as many as fit into the time, but at least three. */
async function measured({ stateDir, manager }, { lines, isSynced }, seconds, commit) {
  const raw = join(stateDir, 'raw');
  mkdirSync(raw, { recursive: true });
  const kinds = { admit: new Rounds(), release: new Rounds() };
  async function round() {
    const times = { admit: [], release: [] };
    const others = [];
    const other = new Float64Array(1);
    const begin = performance.now();
    for (let call = 0; call < CALLS && performance.now() - begin < 100; call++) {
      yardstick.commit(other, raw, ...lines, isSynced);
      others.push(other[0]);
      await commit?.();
      let uid;
      times.admit.push(await timeOf(async () => ({ uid } = await manager.admit(exclusivePod()))));
      times.release.push(await timeOf(() => manager.release(uid)));
    }
    const emptyNs = emptyNow();
    return () => {
      for (const [kind, rounds] of Object.entries(kinds)) rounds.add(times[kind], emptyNs, others);
    };
  }
  const warm = performance.now();
  for (let i = 0; i < 12 && performance.now() - warm < 500; i++) await round();
  const begin = performance.now();
  for (let i = 0; i < 3 || (i < MOST_ROUNDS && performance.now() - begin < seconds * 1000); i++) {
    (await round())();
  }
  return kinds;
}

async function measure([machineName, machine], grants, { where, path, fileSystem }, seconds) {
  const node = await newNode(path, machine, grants);
  try {
    const { uid } = await node.manager.admit(exclusivePod());
    const writes = { lines: linesOf(node.stateDir), isSynced: where === 'disk' };
    await node.manager.release(uid);
    const alone = await measured(node, writes, seconds);
    const peer = await startPeer({ stateDir: node.stateDir, machine, options: COMMITTER });
    const commit = () => peer.call('commit');
    const { admit: after } = await measured(node, writes, seconds, commit).finally(() => peer.close());
    const rowOf = (what, rounds) =>
      rounds.row(`${what}, ${machineName}, ${counted(grants)}, ${where}`, {
        yardstick: 'writes',
        remark: fileSystem,
      });
    return [
      rowOf('admit', alone.admit),
      rowOf('release', alone.release),
      rowOf('admit after a foreign commit', after),
    ];
  } finally {
    node.close();
  }
}

/** An admission and its release, as the kubelet's own code was timed with its checkpoints. */
async function besideKubelet({ where, path, fileSystem }) {
  const { call, close } = await prepared({ ...ownInput('admit-n2-ckpt'), parent: path });
  const [cpus, costs] = [[], []];
  const times = async (count) => {
    for (let i = 0; i < count; i++) await call();
  };
  try {
    await times(500);
    for (let round = 0; round < 9; round++) {
      const emptyNs = emptyNow();
      cpus.push((await cpuOf(() => times(50))) / 50);
      costs.push(cpus.at(-1) / emptyNs);
    }
  } finally {
    close();
  }
  const cpuE = lowerQuartileOf(costs);
  return {
    name: `admit and release, 2 nodes, ${where}`,
    cpuNs: medianOf(cpus),
    cpuE,
    kubeletPart: cpuE / kubeletCost(`admit-n2-ckpt, ${where}`),
    remark: fileSystem,
  };
}

export async function run({ check }) {
  const rows = [];
  for (const parent of stateParents()) rows.push(await besideKubelet(parent));
  for (const machine of Object.entries(MACHINES)) {
    for (const parent of stateParents()) {
      for (const grants of GRANTS) rows.push(...(await measure(machine, grants, parent, check ? 0.8 : 1.5)));
    }
  }
  return rows;
}
