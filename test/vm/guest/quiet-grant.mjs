// Grants of all CPUs of a node, which ask for quiet.
import assert from 'node:assert/strict';
import * as kernel from './kernel-view.mjs';

/** CPUs are taken from the first node on: what comes before the node is held meanwhile. */
export async function acquireOn(manager, node, request) {
  const before = kernel.nodeIds().filter((id) => id < node);
  const fillers = [];
  for (const id of before) fillers.push(await manager.acquire({ cpu: kernel.cpusOfNode(id).length }));
  const grant = await manager.acquire({ cpu: kernel.cpusOfNode(node).length, ...request });
  for (const filler of fillers) await filler.release();
  assert.deepEqual(grant.cpus.toArray(), kernel.cpusOfNode(node));
  return grant;
}
