// Moves through the package's own modules: for tests, and for processes that tests start.
import { changesUnderWay } from '../../dist-test/lib/admission/changes-under-way.js';
import { moveTime, transact } from '../../dist-test/lib/admission/transact.js';
import { moveGrant, releaseRoom } from '../../dist-test/lib/changes/move-grant.js';
import { moverOf } from '../../dist-test/lib/changes/mover.js';
import { announceMove, beginMove, placeOf } from '../../dist-test/lib/decision/changes/move-steps.js';
import { HintProviders } from '../../dist-test/lib/decision/hints/hint-providers.js';
import { noEnforcer } from '../../dist-test/lib/enforcement/enforcer.js';
import { CpuSet, NodeSet } from '../../dist-test/lib/index.js';
import { parseConfig } from '../../dist-test/lib/input/config.js';
import { hostOf as realHost } from '../../dist-test/lib/managers/host.js';
import { NO_QUIETER } from '../../dist-test/lib/quiet/quieter.js';
import { Ledger } from '../../dist-test/lib/state/ledger.js';

/** The admission of a manager of a simulated machine. */
export function hostOf({ topology, stateDir }) {
  return {
    managerId: 0,
    topology,
    ledger: Ledger.open(stateDir),
    enforcer: noEnforcer(),
    quieter: NO_QUIETER,
    enforcement: { enforcement: 'recorded', require: 'recorded', unmovableMembers: 'report' },
    resources: new Map(),
    providers: new HintProviders(),
    lockTimeoutMs: 60_000,
  };
}

export const podOf = (host, uid) => host.ledger.read().assignments.pods.find((pod) => pod.uid === uid);

/** A pod of one container on other CPUs, with all of its memory on one node. */
export function placeAt(pod, cpus, node) {
  const [container] = pod.containers;
  const memory = container.memory.map((block) => ({ ...block, nodes: [node] }));
  const hint = { nodes: NodeSet.of(node), preferred: true };
  return { ...pod, containers: [{ ...container, cpus: CpuSet.parse(cpus), memory, hint }] };
}

/** `to`: { cpus, node }. */
export function move(manager, uid, { cpus, node }, request) {
  const host = hostOf(manager);
  return moveGrant(host, uid, placeAt(podOf(host, uid), cpus, node), request);
}

export const release = (manager, request) =>
  releaseRoom(manager.topology.isSimulated ? hostOf(manager) : realHostOf(manager), request);

/** The admission of a manager of this machine. */
export const realHostOf = ({ topology, stateDir }) => {
  const config = parseConfig({ stateDir, unmovableMembers: 'report' });
  return realHost(config, topology, Ledger.open(stateDir), new Map());
};

/** {@link release} on this machine. */
export const releaseReally = (manager, request) => releaseRoom(realHostOf(manager), request);

/** {@link move} on this machine. */
export function moveReally(manager, uid, { cpus, node }, request) {
  const host = realHostOf(manager);
  return moveGrant(host, uid, placeAt(podOf(host, uid), cpus, node), request);
}

/** The move of a grant begins, like by an owner that then does nothing more. */
export function beginFor(manager, uid) {
  const host = hostOf(manager);
  return transact(host, undefined, async (state, commit) => {
    const pod = state.pods.find((each) => each.uid === uid);
    await commit(beginMove(state, pod, pod.owner.uuid));
  });
}

/** The uuid of a process that has ended. */
const DEAD = '00000000-0000-4000-8000-000000000000';

const announced = (state, uid, cpus, owner) => {
  const pod = state.pods.find((each) => each.uid === uid);
  const place = placeOf(pod, placeAt(pod, cpus, pod.containers[0].hint.nodes?.first ?? 0));
  const time = moveTime();
  const asker = { request: 'asker', owner, ...time, deadline: time.now };
  return announceMove(state, pod, { ...asker, target: place }, () => 0);
};

/** The listeners of a grant learn that a move was called off meanwhile. */
export function conductLate(manager, uid, { cpus, node }) {
  const host = hostOf(manager);
  const pod = podOf(host, uid);
  const target = placeOf(pod, placeAt(pod, cpus, node));
  const deadline = new Date(Date.now() + 60_000 + target.containers[0].cpus.first).toISOString();
  const move = { for: 'asker', deadline, target, refusal: null };
  const upcoming = { container: 'main', cpus: target.containers[0].cpus, held: CpuSet.EMPTY, by: DEAD, move };
  return moverOf(host.ledger).conduct(host, { ...pod, upcoming });
}

/** The record that a process leaves when it dies in the middle of a move, begun or not. */
export function abandonMove(host, uid, cpus, hasBegun) {
  return transact(host, undefined, async (state, commit) => {
    const owner = { ...host.ledger.owners.recordFor('process'), uuid: DEAD };
    const next = announced(state, uid, cpus, owner);
    const pod = next.pods.find((each) => each.uid === uid);
    await commit(hasBegun ? beginMove(next, pod, DEAD) : next);
  });
}

/**
 * Announces and carries out a move that leaves no shared CPU, which no request could cause: a
 * machine of two CPUs has no other.
 */
export async function moveAnyway(host, uid, cpus) {
  const end = host.ledger.registry.of(changesUnderWay).begin(uid);
  try {
    const pod = await transact(host, undefined, async (state, commit) => {
      const { next } = await commit(announced(state, uid, cpus, host.ledger.owners.recordFor('process')));
      return next.pods.find((each) => each.uid === uid);
    });
    await moverOf(host.ledger).conduct(host, pod);
  } finally {
    end();
  }
}
