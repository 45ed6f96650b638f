// One of the processes of the scenario contention: after `go` it acquires and releases for some
// time, and reports how often, and its CPU time.
import { once } from 'node:events';
import { cpuOf } from './cpu-time.mjs';
import { openAt } from './nodes.mjs';

const { stateDir, machine, seconds } = JSON.parse(process.argv[2]);
const manager = await openAt(stateDir, machine);

async function pair() {
  const grant = await manager.acquire({ cpu: 1 });
  await grant.release();
}

await pair();
process.send('ready');
await once(process, 'message');
let pairs = 0;
const end = performance.now() + seconds * 1000;
const cpuNs = await cpuOf(async () => {
  for (; performance.now() < end; pairs++) await pair();
});
process.send({ pairs, cpuNs });
manager.close();
// Stays until it is killed: the end of a process may be heard before its last message.
process.channel.ref();
