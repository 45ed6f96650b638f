// A Worker of a peer: another owner, with a manager and one grant, until its input ends.
import { parentPort, workerData } from 'node:worker_threads';
import { COMMITTER, manyPod, openAt } from './nodes.mjs';

const { stateDir, machine } = workerData;
const manager = await openAt(stateDir, machine, COMMITTER);
await manager.admit(manyPod(null));
parentPort.postMessage('ready');
parentPort.once('message', () => manager.close());
