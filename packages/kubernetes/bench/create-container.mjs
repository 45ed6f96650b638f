// node packages/kubernetes/bench/create-container.mjs [TIMES] [SHARED]: how long CRI's CreateContainer takes
// with numalign-node, against a containerd without plugins and one whose plugin answers nothing.
// Each has a containerd of its own; they take turns, so that what else the machine does hits all.
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { NumalignNode } from '@numalign/kubernetes';
import { openManager } from 'numalign';
import { NriPlugin } from '../dist/nri/plugin.js';
import { Containerd } from '../test/containers/support/containerd.mjs';
import { EXCLUSIVE, managerOptions } from '../test/containers/support/node-fixture.mjs';
import { Pods } from '../test/containers/support/pods.mjs';
import { summary } from './summary.mjs';

// SHARED: containers that must move at each of numalign's answers.
const [TIMES = 100, SHARED = 3] = process.argv.slice(2).map(Number);
const WARM_UP = 5;

const log = () => {};
const SILENT = {
  synchronize: async () => [],
  createContainer: async () => ({}),
  updateContainer: async () => [],
  stopContainer: async () => [],
};

const silentPlugin = (nriSocket) =>
  new NriPlugin({ socketPath: nriSocket, name: 'silent', index: '90', handlers: SILENT, log });

async function startRuntime(name, makePlugin) {
  const runtime = await Containerd.start();
  const pods = new Pods(runtime);
  const plugin = makePlugin?.(runtime.nriSocketPath);
  await plugin?.start();
  for (let i = 0; i < SHARED; i++) await pods.runPod(`shared-${i}`);
  const pod = await pods.createPod('measured');
  const seen = join(runtime.folder, 'seen-measured');
  mkdirSync(seen);
  return {
    name,
    milliseconds: [],
    async once(isMeasured) {
      await pod.removeContainer();
      const start = performance.now();
      await pod.createContainer(seen, EXCLUSIVE);
      if (isMeasured) this.milliseconds.push(performance.now() - start);
    },
    async close() {
      await pods.close();
      await plugin?.close();
      await runtime.close();
    },
  };
}

const stateDir = mkdtempSync(join(tmpdir(), 'numalign-bench-'));
const manager = await openManager(managerOptions(stateDir));
const runtimes = [];
try {
  runtimes.push(await startRuntime('no plugin'));
  runtimes.push(await startRuntime('a plugin that answers nothing', silentPlugin));
  runtimes.push(
    await startRuntime('numalign-node', (nriSocket) => new NumalignNode({ manager, nriSocket, log })),
  );
  for (let i = 0; i < TIMES + WARM_UP; i++) for (const runtime of runtimes) await runtime.once(i >= WARM_UP);
  console.log(`CreateContainer, ${TIMES} times, ${SHARED} shared containers move; in milliseconds`);
  for (const { name, milliseconds } of runtimes) console.log(summary(name, milliseconds));
  const [none, silent, numalign] = runtimes;
  for (const base of [none, silent]) {
    const differences = numalign.milliseconds.map((each, i) => each - base.milliseconds[i]);
    console.log(summary(`more than with ${base.name}`, differences));
  }
} finally {
  for (const runtime of runtimes) await runtime.close();
  manager.close();
  rmSync(stateDir, { recursive: true });
}
