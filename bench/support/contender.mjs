// One of the processes of the scenario contention: admits and releases for a while, and sends how long each admission took.
import { discover, openManager } from '../../dist/index.js';

const { stateDir, machine, seconds } = JSON.parse(process.argv[2]);
const manager = await openManager({
  topology: await discover({ synthetic: machine }),
  stateDir,
  lockTimeoutMs: 120_000,
});
process.once('message', async () => {
  const times = [];
  const end = performance.now() + seconds * 1000;
  for (let i = 0; performance.now() < end; i++) {
    const begin = performance.now();
    const grant = await manager.acquire({ cpu: 1 + (i % 4) });
    times.push((performance.now() - begin) * 1e6);
    await grant.release();
  }
  process.send({ times });
});
process.send('ready');
