// A worker that does not use numalign: it reports where it runs in its first line, and then does
// its TASK.
import { readFileSync } from 'node:fs';

const [, cpus] = /^Cpus_allowed_list:\s*(\S+)$/m.exec(readFileSync('/proc/self/status', 'utf8'));
const { NUMALIGN_GRANT, NUMALIGN_CPUS, TASK, MARK } = process.env;
if (process.connected) process.send({ cpus, grant: NUMALIGN_GRANT, granted: NUMALIGN_CPUS, mark: MARK });

const tasks = {
  // Until it is disconnected.
  wait: () => {},
  exit: () => process.exit(Number(MARK)),
  // Goes on after it is disconnected.
  linger: () => setInterval(() => {}, 1000),
  // Receives nothing, not even its primary's end, while the file MARK exists.
  deaf: () => {
    const still = new Int32Array(new SharedArrayBuffer(4));
    const isThere = () => {
      try {
        return readFileSync(MARK) !== undefined;
      } catch {
        return false;
      }
    };
    while (isThere()) Atomics.wait(still, 0, 0, 5);
  },
  // Only these load a server: most workers start sooner.
  serve: async () => {
    const { createServer } = await import('node:http');
    createServer((_, response) => response.end(`${process.pid}`)).listen(Number(MARK), '127.0.0.1');
  },
};
tasks[TASK ?? 'wait']();
