// Moves as the package's own modules make them: for tests, and for processes that tests start.
import { HintProviders } from '../../dist/decision/hints/hint-providers.js';
import { NO_ENFORCER } from '../../dist/enforcement/enforcer.js';
import { CpuSet, NodeSet } from '../../dist/index.js';
import { moveGrant, releaseRoom } from '../../dist/moves/move-grant.js';
import { NO_QUIETER } from '../../dist/quiet/quieter.js';
import { Ledger } from '../../dist/state/ledger.js';

/** Where a manager of a simulated machine admits. */
export function siteOf({ topology, stateDir }) {
  return {
    managerId: 0,
    topology,
    ledger: Ledger.open(stateDir),
    enforcer: NO_ENFORCER,
    quieter: NO_QUIETER,
    enforcement: { enforcement: 'recorded', require: 'recorded', unmovableMembers: 'report' },
    resources: new Map(),
    providers: new HintProviders(),
    lockTimeoutMs: 60_000,
  };
}

export const podOf = (site, uid) => site.ledger.read().assignments.pods.find((pod) => pod.uid === uid);

/** A pod of one container on other CPUs, with all of its memory on one node. */
export function placeAt(pod, cpus, node) {
  const [container] = pod.containers;
  const memory = container.memory.map((block) => ({ ...block, nodes: [node] }));
  const hint = { nodes: NodeSet.of(node), preferred: true };
  return { ...pod, containers: [{ ...container, cpus: CpuSet.parse(cpus), memory, hint }] };
}

/** `to`: { cpus, node }. */
export function move(manager, uid, { cpus, node }, request) {
  const site = siteOf(manager);
  return moveGrant(site, uid, placeAt(podOf(site, uid), cpus, node), request);
}

export const release = (manager, request) => releaseRoom(siteOf(manager), request);
