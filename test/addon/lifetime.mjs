// lifetime.mjs FOLDER: a process whose Workers alone load the addon. Its commands, a line each:
// `wait` starts a Worker that waits for the folder's lock, `pin` one that pins the process for a
// grant; `end` terminates it; `acquire` starts one that acquires the same and releases it. Each
// command is answered by a line of JSON. Ends with its input.
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { Worker } from 'node:worker_threads';

const [folder] = process.argv.slice(2);
const url = (name) => JSON.stringify(new URL(`../../dist-test/lib/${name}.js`, import.meta.url).href);
const BODIES = {
  wait: `const { native } = await import(${url('base/native')});
    native.Folder.open(folder, true, 0o700, -1).waitLock('lock', '', () => {}, () => {});
    parentPort.postMessage('waiting');`,
  pin: `const { openManager } = await import(${url('index')});
    const manager = await openManager({ stateDir: folder });
    const grant = await manager.acquire({ cpu: 1 });
    grant.pin({ threads: 'process' });
    parentPort.postMessage(String(grant.cpus));`,
  acquire: `const { openManager } = await import(${url('index')});
    const { affinity } = await import(${url('entries/diagnostics')});
    const manager = await openManager({ stateDir: folder });
    const grant = await manager.acquire({ cpu: 1 });
    const cpus = String(grant.cpus);
    await grant.release();
    parentPort.postMessage({ cpus, mask: String(affinity(process.pid)) });`,
};

let worker;
for await (const command of createInterface({ input: process.stdin })) {
  let answer = 'ended';
  if (command === 'end') {
    await worker.terminate();
  } else {
    const code = `const { parentPort, workerData: folder } = require('node:worker_threads');
      setInterval(() => {}, 1000);
      (async () => { ${BODIES[command]} })().catch(({ message }) => parentPort.postMessage({ message }));`;
    worker = new Worker(code, { eval: true, workerData: folder });
    [answer] = await once(worker, 'message');
  }
  console.log(JSON.stringify(answer));
}
process.exit();
