// Moves of grants on a simulated machine: how an agent requests them, through the modules of its
// package, and how it answers them.
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { modulesOf } from './package-modules.mjs';

const isReady = ({ movable, upcoming, transfer, formerOwner, containers }) =>
  movable && upcoming === null && transfer === null && formerOwner === null && containers.length === 1;

/**
 * `reserved`: CPUs that no grant can have; `quieterOf`: the quieter of a manager, if not none.
 * Returns undefined if the package lacks moves or the dynamic policy.
 */
export async function openMoves(folder, random, reserved, quieterOf = () => undefined) {
  const load = modulesOf(folder);
  const { CpuSet, Manager, NodeSet } = await load('index');
  if (typeof Manager.prototype.defragment !== 'function') return undefined;
  const { HintProviders } = await load('decision/hints/hint-providers');
  const { noEnforcer } = await load('enforcement/enforcer');
  const { giveBackRoom, moveGrant } = await load('changes/move-grant');
  const { NO_QUIETER } = await load('quiet/quieter');
  const { announceMove, beginMove, placeOf } = await load('decision/changes/move-steps');
  const { changesUnderWay } = await load('admission/changes-under-way');
  const { moveTime, transact } = await load('admission/transact');
  const { Ledger } = await load('state/ledger');

  // Any of the CPUs that it has and of the free ones, and any node.
  function placeFor(pod, shared) {
    const [container] = pod.containers;
    const all = [...shared.difference(CpuSet.coerce(reserved)).union(container.cpus)];
    const cpus = [];
    while (cpus.length < container.cpus.size) cpus.push(...all.splice(random.below(all.length), 1));
    const node = random.below(2);
    const memory = container.memory.map((block) => ({ ...block, nodes: [node] }));
    const hint = { nodes: NodeSet.of(node), preferred: true };
    return { ...pod, containers: [{ ...container, cpus: CpuSet.from(cpus), memory, hint }] };
  }

  function hostOf(manager) {
    return {
      ...{ managerId: 0, topology: manager.topology, ledger: Ledger.open(manager.stateDir) },
      ...{ enforcer: noEnforcer(), quieter: quieterOf(manager) ?? NO_QUIETER },
      ...{ resources: new Map(), lockTimeoutMs: 3000 },
      providers: new HintProviders(),
      enforcement: { enforcement: 'recorded', require: 'recorded', unmovableMembers: 'report' },
    };
  }

  // A move that stops here.
  function announce(manager, uid, step = (state) => state) {
    const host = hostOf(manager);
    host.ledger.registry.of(changesUnderWay).begin(uid);
    return transact(host, undefined, async (state, commit) => {
      const podIn = ({ pods }) => pods.find((each) => each.uid === uid);
      const owner = host.ledger.owners.recordFor('process');
      const asker = { request: randomUUID(), owner, ...moveTime(), deadline: moveTime().now };
      const target = placeOf(podIn(state), placeFor(podIn(state), manager.sharedPool()));
      const next = announceMove(state, podIn(state), { ...asker, target }, () => 0);
      await commit(step(next, podIn(next), owner.uuid));
    });
  }

  return {
    /**
     * `uid`: by default any. Undefined if no grant can move; else the process that keeps its room.
     */
    async move(manager, uid) {
      const host = hostOf(manager);
      const pods = host.ledger
        .read()
        .assignments.pods.filter((pod) => isReady(pod) && (uid === undefined || pod.uid === uid));
      if (pods.length === 0) return undefined;
      const pod = random.pick(pods);
      const room = randomUUID();
      const signal = random.chance(6) ? AbortSignal.timeout(random.below(200)) : undefined;
      try {
        await moveGrant(host, pod.uid, placeFor(pod, manager.sharedPool()), { for: room, signal });
        return room;
      } catch (error) {
        // It may have moved all the same.
        await giveBackRoom(host, room);
        throw error;
      }
    },
    /** The record while the owner of a grant has not answered. */
    announce: (manager, uid) => announce(manager, uid),
    /** The record while the pages of a grant follow. */
    begin: (manager, uid) => announce(manager, uid, beginMove),
  };
}

// Some answer at once, some later or after their notice, and some refuse.
function answer({ waitUntil }, random) {
  const what = random.weighted({ atOnce: 6, later: 4, late: 1, refuse: 1, reject: 1 });
  if (what === 'later') waitUntil(sleep(random.below(150)));
  if (what === 'late') waitUntil(sleep(150 + random.below(300)));
  if (what === 'refuse') throw new Error('it stays');
  if (what === 'reject')
    waitUntil(
      sleep(random.below(100)).then(() => {
        throw new Error('it stays, after some thought');
      }),
    );
}

/**
 * Answers the moves of a grant of this agent. `entry`: { grant, isPersistent, isBusy, isMoving };
 * `drops`, `holds`: report that it begins to give away what it has, and that it has something.
 */
export function answerMoves(entry, random, { drops, holds }) {
  const { grant } = entry;
  // Once it learns of a move it may begin to give away what it has. An operation on the grant has
  // already reported that, and reports afterwards what it has, unless a move is still to end.
  const isTold = () => !entry.isBusy && !entry.isPersistent;
  grant.on('move', (event) => {
    entry.isMoving = true;
    if (isTold()) drops();
    answer(event, random);
  });
  grant.on('moveEnd', () => {
    entry.isMoving = false;
    if (isTold()) holds();
  });
}
