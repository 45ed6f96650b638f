// An HTTP server with one process per available CPU, by node:cluster. Try it with: curl
// http://127.0.0.1:8080/
//   WORKERS=4 node examples/cluster-server.mjs    the number of processes
//   STATE_DIR=/tmp/numalign node examples/…       a private state folder
//   kill -HUP PID                                 restarts them one by one, kill PID ends them
import { createServer } from 'node:http';
import { availableParallelism } from 'node:os';
import cluster from 'numalign/cluster';

const { WORKERS = availableParallelism(), PORT = '8080', STATE_DIR } = process.env;

if (cluster.isPrimary) {
  if (STATE_DIR !== undefined) cluster.setupPrimary({ manager: { stateDir: STATE_DIR } });
  cluster.on('listening', ({ process: { pid }, grant }, { address, port }) => {
    const place = grant ? `CPU ${grant.cpus}, enforcement "${grant.enforcement}"` : 'the shared pool';
    console.log(`http://${address}:${port}/ by process ${pid} on ${place}`);
  });
  // The last one may get no CPU: one is left for everything else.
  for (let i = 0; i < Number(WORKERS); i++)
    await cluster.fork({ cpu: 1, name: `server-${i}`, optional: true });

  process.on('SIGHUP', () => cluster.restart().then(() => console.log('restarted'), console.error));
  process.once('SIGTERM', () => cluster.disconnect());
  process.once('SIGINT', () => cluster.disconnect());
} else {
  const cpus = process.env.NUMALIGN_CPUS ?? 'shared';
  createServer((_request, response) => {
    response.setHeader('content-type', 'application/json');
    response.end(`${JSON.stringify({ pid: process.pid, cpus })}\n`);
  }).listen(Number(PORT), '127.0.0.1');
}
