// One of the processes of the scenario contention: from `go` to `stop` it admits and releases. It
// reports each admission, and at the end how long each took.
import { setImmediate as turn } from 'node:timers/promises';
import { openAt } from './nodes.mjs';

const { stateDir, machine } = JSON.parse(process.argv[2]);
const manager = await openAt(stateDir, machine);

async function contend() {
  const times = [];
  let isOver = false;
  process.once('message', () => {
    isOver = true;
  });
  for (let i = 0; !isOver; i++) {
    const begin = performance.now();
    const grant = await manager.acquire({ cpu: 1 + (i % 4) });
    times.push((performance.now() - begin) * 1e6);
    process.send({ admitted: times.length });
    await grant.release();
    // A process alone in memory waits for nothing, and would never notice the end.
    await turn();
  }
  process.send({ times });
}

process.once('message', contend);
process.send({ ready: true });
