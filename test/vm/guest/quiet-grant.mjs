// Quiet grants of all CPUs of a node.
import assert from 'node:assert/strict';
import * as kernel from './kernel-view.mjs';

/**
 * CPUs are taken from the first whole node on. The CPUs before the node are held meanwhile, except
 * one, so that some are shared.
 */
export async function acquireOn(manager, node, request) {
  const before = kernel.nodeIds().filter((id) => id < node);
  const fillers = [];
  for (const id of before) {
    const cpu = id === 0 ? 1 : kernel.cpusOfNode(id).length;
    fillers.push(await manager.acquire({ cpu }));
  }
  try {
    const grant = await manager.acquire({ cpu: kernel.cpusOfNode(node).length, ...request });
    assert.deepEqual(grant.cpus.toArray(), kernel.cpusOfNode(node));
    return grant;
  } finally {
    for (const filler of fillers) await filler.release();
  }
}
