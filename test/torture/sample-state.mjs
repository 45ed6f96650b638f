// Writes a state folder with something of everything in it, through the package: for tests that
// damage or mutate its files. This process lives as the owner until its input ends; it answers {
// stateDir, grants: CPUs by uid } when it is done.
//
//   node sample-state.mjs PACKAGE STATEDIR [moves]
//
// With `moves` some grants have moved, some are in the middle of it, and some are mixed.
import { once } from 'node:events';
import { openMoves } from './moves.mjs';
import { modulesOf } from './package-modules.mjs';
import { Random } from './random.mjs';

const [folder, stateDir, withMoves] = process.argv.slice(2);
const load = modulesOf(folder);
const { discover } = await load('entries/topology');
const { openManager } = await load('index');
const { simulatedMachine } = await import('./machines.mjs');

const { synthetic, options, resource } = simulatedMachine();
const manager = await openManager({ ...options, topology: await discover({ synthetic }), stateDir });
const amounts = { cpu: 2, memory: '64Mi' };
const pod = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { uid: 'pod-1', name: 'pod' },
  spec: {
    initContainers: [
      { name: 'init', resources: { requests: { ...amounts, cpu: 3 }, limits: { ...amounts, cpu: 3 } } },
    ],
    containers: [{ name: 'app', resources: { requests: amounts, limits: amounts } }],
  },
};
await manager.admit(pod);
await manager.admit({ ...pod, metadata: { uid: 'pod-2', name: 'kept' } }, { owner: 'persistent' });
await manager.acquire({ cpu: 4, memory: '1Gi', name: 'own', resources: { [resource]: 2 } });
const first = await manager.acquire({ cpu: 1, name: 'gone' });
await first.release();
// A generation before this one, with the same number of grants.
await manager.acquire({ cpu: 2, smt: 'hold-sibling', name: 'siblings' });
await manager.admit({
  ...pod,
  metadata: { uid: 'pod-3', name: 'last' },
  spec: { containers: pod.spec.containers },
});

if (withMoves) {
  const moves = await openMoves(folder, new Random(8), options.reservedSystemCPUs);
  const terms = { maxPerHour: 20, notice: 3_600_000 };
  await manager.acquire({ cpu: 1.5, mixed: true, name: 'mixed', owner: 'persistent' });
  const movers = [];
  for (const owner of ['process', 'persistent', 'persistent']) {
    // The first goes to any node.
    const movable = owner === 'process' ? terms : { ...terms, exclude: [1] };
    movers.push(await manager.acquire({ cpu: 1, memory: '1Gi', policy: 'single-numa-node', movable, owner }));
  }
  await moves.move(manager, movers[0].uid);
  await moves.announce(manager, movers[1].uid);
  await moves.begin(manager, movers[2].uid);
}

const grants = Object.fromEntries(manager.grants().map(({ uid, cpus }) => [uid, String(cpus)]));
console.log(JSON.stringify({ stateDir, grants }));
process.stdin.resume();
await once(process.stdin, 'end');
