// Admitting and releasing, durably, compared with an append of the changes and an fdatasync in the
// same folder: on a simulated machine and on this one, alone and after another process has
// committed.
import { join } from 'node:path';
import { COMMITTER, exclusivePod, MACHINES, newNode } from './support/nodes.mjs';
import { startPeer } from './support/peers.mjs';
import { emptyNow, Rounds, timeOf } from './support/rounds.mjs';
import { stateParents } from './support/state-parents.mjs';
import { counted } from './support/targets.mjs';
import { yardstick } from './support/yardstick.mjs';

export const description =
  'Manager.admit and release, durable: on disk and tmpfs, with 1, 64 and 512 grants on record, alone and after a foreign commit';
export const explanation = `
Admits and releases one CPU: first with the folder to itself, then each time after another process
has committed. That process has \`sharedMember: false\` and reconciles nothing, so it adds no time of
its own.`;

const GRANTS = [1, 64, 512];
const CALLS = 5;
const MOST_ROUNDS = 40;

/** Rounds of an admission and its release, as many as fit into the time, but at least three. */
async function measured({ stateDir, manager }, record, seconds, commit) {
  const kinds = { admit: new Rounds(), release: new Rounds() };
  async function round() {
    const times = { admit: [], release: [] };
    const appends = [];
    const append = new Float64Array(1);
    const begin = performance.now();
    for (let call = 0; call < CALLS && performance.now() - begin < 100; call++) {
      yardstick.append(append, join(stateDir, 'raw'), record);
      appends.push(append[0]);
      await commit?.();
      let uid;
      times.admit.push(await timeOf(async () => ({ uid } = await manager.admit(exclusivePod()))));
      times.release.push(await timeOf(() => manager.release(uid)));
    }
    const emptyNs = emptyNow();
    return () => {
      for (const [kind, rounds] of Object.entries(kinds)) rounds.add(times[kind], emptyNs, appends);
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
    // The least that a record says about a grant.
    const record = Buffer.from(`${JSON.stringify(node.manager.grants()[0])}\n`);
    const alone = await measured(node, record, seconds);
    const peer = await startPeer({ stateDir: node.stateDir, machine, options: COMMITTER });
    const commit = () => peer.call('commit');
    const { admit: after } = await measured(node, record, seconds, commit).finally(() => peer.close());
    const remark = `${record.length} bytes on ${fileSystem}`;
    const rowOf = (what, rounds) =>
      rounds.row(`${what}, ${machineName}, ${counted(grants)}, ${where}`, { yardstick: 'append', remark });
    return [
      rowOf('admit', alone.admit),
      rowOf('release', alone.release),
      rowOf('admit after a foreign commit', after),
    ];
  } finally {
    node.close();
  }
}

export async function run({ check }) {
  const rows = [];
  for (const machine of Object.entries(MACHINES)) {
    for (const parent of stateParents()) {
      for (const grants of GRANTS) rows.push(...(await measure(machine, grants, parent, check ? 0.8 : 1.5)));
    }
  }
  return rows;
}
