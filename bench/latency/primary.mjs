// The primary of the scenario latency: it starts a worker for each port, on its CPUs. Ends with its
// input.
import { execFileSync } from 'node:child_process';
import nodeCluster from 'node:cluster';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { openManager } from '../../dist/index.js';

const { ports, cpus, kind, manager, members } = JSON.parse(process.argv[2]);
const exec = fileURLToPath(new URL('server.mjs', import.meta.url));

// Workers accept their connections: the primary would do so among the aggressors.
nodeCluster.schedulingPolicy = nodeCluster.SCHED_NONE;

async function fork(port, cpu) {
  if (kind !== 'numalign') {
    const worker = nodeCluster.fork({ PORT: port });
    await once(worker, 'listening');
    if (kind === 'taskset') execFileSync('taskset', ['-acp', cpu, worker.process.pid]);
    return;
  }
  const { default: cluster } = await import('../../dist/entries/cluster.js');
  const worker = await cluster.fork({ cpu: 1, env: { PORT: port } });
  await once(worker, 'listening');
}

if (kind === 'numalign') {
  const { default: cluster } = await import('../../dist/entries/cluster.js');
  cluster.setupPrimary({ exec, manager });
  const own = await openManager({ ...manager, sharedMember: false });
  for (const pid of members) await own.addSharedMember({ pid });
  own.close();
} else nodeCluster.setupPrimary({ exec });
for (const [i, port] of ports.entries()) await fork(port, cpus[i]);
const pids = Object.values(nodeCluster.workers).map(({ process }) => process.pid);
console.log(JSON.stringify(pids));
await once(process.stdin.resume(), 'end');
nodeCluster.disconnect(() => process.exit());
