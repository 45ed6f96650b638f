// A small agent: admits the pods of manifests as a kubelet would, runs their containers' commands
// as processes on the granted CPUs, and releases each pod when its last container has ended.
//   npm install yaml
//   node examples/pod-agent.mjs examples/pod.yaml
//   STATE_DIR=/tmp/numalign node examples/…       a private state folder
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { NumalignError, openManager } from 'numalign';
import { parseAllDocuments } from 'yaml';

// Waits for a line before it becomes the command, until it is on the container's CPUs.
const GATE = ['-c', 'read -r _ && exec "$@"', 'sh'];

// Resolves once the container has started, with a promise of its end that says whether it
// succeeded. Its process is among `children` from the start.
async function start(pod, { name, command = [], args = [] }, children) {
  const container = pod.container(name);
  const child = spawn('sh', [...GATE, ...command, ...args], { stdio: ['pipe', 'inherit', 'inherit'] });
  const ended = once(child, 'exit').then(([code, signal]) => {
    console.log(`${pod.name}/${name}: ended with ${signal ?? code}`);
    return code === 0;
  });
  // If the process ends before its line arrives, `ended` reports that.
  child.stdin.on('error', () => {});
  children.push({ child, ended });
  await container.attach(child.pid);
  await pod.markStarted(name);
  console.log(`${pod.name}/${name}: process ${child.pid} on ${container.cpus ?? 'the shared pool'}`);
  child.stdin.end('\n');
  return { ended };
}

async function runPod(manager, manifest) {
  // This process owns the grant: if the agent dies, its containers continue in the shared pool.
  const pod = await manager.admit(manifest);
  for (const { message } of pod.warnings) console.warn(`${pod.name}: ${message}`);
  const { initContainers = [], containers } = manifest.spec;
  const children = [];
  try {
    for (const container of initContainers) {
      const { ended } = await start(pod, container, children);
      if (container.restartPolicy === 'Always' || (await ended)) continue;
      console.error(
        `${pod.name}: init container ${container.name} has failed: no other container is started`,
      );
      process.exitCode = 1;
      return;
    }
    const apps = await Promise.all(containers.map((container) => start(pod, container, children)));
    await Promise.all(apps.map(({ ended }) => ended));
  } finally {
    // Sidecars, and whatever was started before an error.
    for (const { child } of children) child.kill();
    await Promise.all(children.map(({ ended }) => ended));
    await pod.release();
  }
}

const { STATE_DIR } = process.env;
const manager = await openManager({
  policy: 'restricted',
  ...(STATE_DIR !== undefined && { stateDir: STATE_DIR }),
});
for (const file of process.argv.slice(2)) {
  for (const document of parseAllDocuments(readFileSync(file, 'utf8'))) {
    const [mistake] = document.errors;
    if (mistake) throw mistake;
    try {
      await runPod(manager, document.toJS());
    } catch (error) {
      // A rejection explains itself; the next pod may fit.
      if (!(error instanceof NumalignError)) throw error;
      console.error(error.details.explanation?.text ?? error.message);
      process.exitCode = 1;
    }
  }
}
console.log(`shared pool: ${manager.sharedPool()}`);
manager.close();
