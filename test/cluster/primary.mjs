// A primary that forks a worker for each of FORKS, and prints their pids once they have all said where
// they run.
import { once } from 'node:events';
import cluster from '../../dist/entries/cluster.js';

const { STATE_DIR, FORKS } = process.env;
cluster.setupPrimary({
  manager: { stateDir: STATE_DIR },
  exec: new URL('worker.mjs', import.meta.url).pathname,
});
const workers = await Promise.all(
  JSON.parse(FORKS).map(async (options) => {
    const worker = await cluster.fork(options);
    const [{ cpus }] = await once(worker, 'message');
    return { pid: worker.process.pid, cpus, isGranted: worker.grant !== null };
  }),
);
console.log(JSON.stringify(workers));
