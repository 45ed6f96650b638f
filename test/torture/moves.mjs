// Moves of grants on a simulated machine, as an agent asks for them: by the modules of its package.
import { randomUUID } from 'node:crypto';
import { pathToFileURL } from 'node:url';

const isReady = ({ movable, upcoming, transfer, formerOwner }) =>
  movable && upcoming === null && transfer === null && formerOwner === null;

/** `reserved`: CPUs that nobody can have. Answers undefined where the package has no moves. */
export async function openMoves(folder, random, reserved) {
  const load = (name) => import(pathToFileURL(`${folder}/dist/${name}.js`));
  const { CpuSet, Grant, NodeSet } = await load('index');
  if (typeof Grant.prototype.on !== 'function') return undefined;
  const { HintProviders } = await load('decision/hints/hint-providers');
  const { NO_ENFORCER } = await load('enforcement/enforcer');
  const { moveGrant } = await load('moves/move-grant');
  const { NO_QUIETER } = await load('quiet/quieter');
  const { Ledger } = await load('state/ledger');

  // Any of the CPUs that it has and of those that nobody has, and any node.
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

  return {
    /** Undefined where there is no grant to be moved; else the uid of what keeps its room. */
    async move(manager) {
      const ledger = Ledger.open(manager.stateDir);
      const pods = ledger.read().assignments.pods.filter(isReady);
      if (pods.length === 0) return undefined;
      const pod = random.pick(pods);
      const site = {
        ...{ managerId: 0, topology: manager.topology, ledger, lockTimeoutMs: 3000 },
        ...{
          enforcer: NO_ENFORCER,
          quieter: NO_QUIETER,
          resources: new Map(),
          providers: new HintProviders(),
        },
        enforcement: { enforcement: 'recorded', require: 'recorded', unmovableMembers: 'report' },
      };
      const room = randomUUID();
      await moveGrant(site, pod.uid, placeFor(pod, manager.sharedPool()), { for: room });
      return room;
    },
  };
}
