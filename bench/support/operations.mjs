// Runs the operations of the scenario calls. Before and after each, it writes to a descriptor that
// does not exist, which shows in a trace.
import { writeSync } from 'node:fs';
import { affinity } from '../../dist/entries/diagnostics.js';
import { pinThread } from '../../dist/index.js';
import { COMMITTER, exclusivePod, manyPod, newNode } from './nodes.mjs';
import { startPeer } from './peers.mjs';

const { path, machine, grants, times } = JSON.parse(process.argv[2]);
const NO_DESCRIPTOR = 1_000_000;

function mark(text) {
  try {
    writeSync(NO_DESCRIPTOR, text);
  } catch {}
}

async function marked(name, action) {
  mark(`begin ${name}`);
  await action();
  mark('end');
}

const node = await newNode(path, machine, grants);
const peer = await startPeer({ stateDir: node.stateDir, machine, options: COMMITTER });
const { manager } = node;
const all = affinity();
try {
  for (let i = 0; i < times; i++) {
    let uid;
    await marked('admit', async () => ({ uid } = await manager.admit(exclusivePod())));
    await marked('release', () => manager.release(uid));
    await marked('plan', () => manager.plan(exclusivePod()));
    await peer.call('commit');
    await marked('plan after a foreign commit', () => manager.plan(manyPod(machine)));
    await peer.call('commit');
    await marked('admit after a foreign commit', async () => ({ uid } = await manager.admit(exclusivePod())));
    await manager.release(uid);
    await marked('sharedPool', () => manager.sharedPool());
    await marked('pinThread', () => pinThread(all));
  }
} finally {
  await peer.close();
  node.close();
}
