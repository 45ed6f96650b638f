// An HTTP server whose main thread has its own CPU. Try it with: curl http://127.0.0.1:8080/ and
// …/audit
//   CPUS=2 node examples/http-server.mjs          the main thread alone on one CPU, the rest on
//                                                 the other
//   STATE_DIR=/tmp/numalign node examples/…       a private state folder
import { createServer } from 'node:http';
import { CpuSet, openManager } from 'numalign';
import { affinity } from 'numalign/diagnostics';

const { CPUS = '1', PORT = '8080', STATE_DIR } = process.env;

const manager = await openManager(STATE_DIR === undefined ? {} : { stateDir: STATE_DIR });
// With a name it gets the same CPUs again after a restart, if they are free.
const grant = await manager.acquire({ name: 'http-server', cpu: Number(CPUS) });

// Moves all threads onto the grant, and this thread's memory near it. V8's helpers too, since a
// garbage collection waits for them.
grant.pin();
const main = CpuSet.of(grant.cpus.first);
const others = grant.cpus.difference(main);
if (!others.isEmpty) await grant.placeThreads({ main, workers: others, pool: others, v8: others, others });

const server = createServer((request, response) => {
  response.setHeader('content-type', 'application/json');
  // What the grant was worth so far. Not for every request: it reads some files of /proc.
  const audit = request.url === '/audit' && grant.audit({ foreign: false, interrupts: false });
  response.end(`${JSON.stringify(audit ? audit.totals : { path: request.url, cpus: `${affinity()}` })}\n`);
});
server.listen(Number(PORT), '127.0.0.1', () => {
  console.log(
    `http://127.0.0.1:${server.address().port}/ on CPU ${main}, enforcement "${grant.enforcement}"`,
  );
});

// The CPUs are released when the last request is answered, after at most five seconds. Without this
// they would be released when the process ends.
function stop() {
  server.close(async () => {
    await grant.release();
    manager.close();
  });
  setTimeout(() => server.closeAllConnections(), 5000).unref();
}
process.once('SIGTERM', stop);
process.once('SIGINT', stop);
