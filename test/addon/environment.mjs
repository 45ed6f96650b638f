// A Worker that begins all kinds of work at random until its environment ends. `workerData`: seed;
// folder; exits: true to end it by process.exit() in some callback of the addon.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parentPort, workerData } from 'node:worker_threads';
import { native } from '../../dist-test/lib/base/native.js';
import { discover } from '../../dist-test/lib/entries/topology.js';
import { openManager } from '../../dist-test/lib/index.js';
import { Random } from '../torture/random.mjs';

const { seed, folder: path, exits } = workerData;
const random = new Random(seed);
const IN_CREATE = 0x100;
const nodes = Uint32Array.of(1);

const openFolder = () => native.Folder.open(path, true, 0o700, -1);
const folder = openFolder();
const topology = await discover({ synthetic: 'numa:2 core:8 pu:2' });
const manager = await openManager({ stateDir: join(path, 'managed'), topology });

let callsLeft = 1 + random.below(20);
const callback = (action) => (argument, other) => {
  if (exits && --callsLeft === 0) process.exit();
  action?.(argument, other);
};
const settle = (promise, action) => promise.then(callback(action), callback());

const KINDS = [
  () => {
    // Each folder has a thread that waits.
    const waiting = random.chance(2) ? folder : openFolder();
    const request = waiting.waitLock(
      'lock',
      '',
      callback((_, lock) => lock?.release()),
      callback(),
    );
    if (random.chance(3)) waiting.giveUp(request);
    else if (random.chance(4)) waiting.close();
  },
  () => {
    const lock = openFolder().tryLock('lock', '');
    setTimeout(
      callback(() => lock?.release()),
      random.below(4),
    );
  },
  () => {
    const written = folder.replaceDurably(`file-${random.below(3)}`, '', Buffer.from('text'), 0);
    settle(Promise.resolve(written));
  },
  () => {
    const notices = new native.Inotify(callback());
    notices.add(path, IN_CREATE);
    writeFileSync(join(path, `seen-${random.below(1000)}`), '');
    if (random.chance(3)) notices.close();
  },
  () => new native.CpuEvents(callback()),
  () => native.probePool(1 + random.below(3), 5).forEach((each) => void settle(each)),
  () => native.nodeBuffer(1 + random.below(1 << 16), 0, nodes, false).fill(1),
  () => native.threads(),
  () =>
    native.pin({
      ...{ tid: 0, cpus: native.affinity(0), grant: `grant of ${seed}`, part: '', owner: '' },
      replace: true,
    }),
  () => settle(discover()),
  () =>
    settle(manager.acquire({ cpu: 1 + random.below(2) }), (grant) => {
      if (random.chance(2)) grant.release().catch(() => {});
    }),
];

parentPort.postMessage('began');
for (;;) {
  random.pick(KINDS)();
  await new Promise((resolve) => setImmediate(resolve));
}
