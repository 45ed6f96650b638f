// A pod on each release of containerd, and what remains of it.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { CRI_RELEASES } from './components.mjs';
import { hierarchyRoots } from './support/cgroups.mjs';
import { Containerd } from './support/containerd.mjs';
import { Pods } from './support/pods.mjs';
import { allowedOf, cpusetFolderOf, isRunning } from './support/process-view.mjs';

const groupsOf = (parent) =>
  hierarchyRoots()
    .map((root) => join(root, parent))
    .filter(existsSync);

for (const release of CRI_RELEASES) {
  describe(`containerd ${release} runs pods`, () => {
    it('whose CPUs, environment and cgroup are read', async () => {
      const runtime = await Containerd.start({ release });
      const pods = new Pods(runtime);
      try {
        const pod = await pods.runPod('pinned', { resources: { cpuset_cpus: '0' }, envs: { WHO: 'me' } });
        const seen = await pod.seen();
        assert.equal(seen.cpus, '0');
        assert.equal(seen.mems, allowedOf(process.pid).mems);
        assert.equal(seen.env.WHO, 'me');
        assert.equal((await pod.allowed()).cpus, '0');
        assert.ok((await pod.cpusetFolder()).includes(`${runtime.cgroupParent}/`));
        assert.equal((await pod.exec('cat', '/proc/1/comm')).stdout, 'sh\n');
      } finally {
        await pods.close();
        await runtime.close();
      }
    });

    it('which continue if it is killed, and are there when it is started again', async () => {
      const runtime = await Containerd.start({ release });
      const pods = new Pods(runtime);
      try {
        const pod = await pods.runPod('lasting');
        const pid = await pod.pid();
        await runtime.restart('SIGKILL');
        assert.equal(await pod.pid(), pid);
        assert.ok(cpusetFolderOf(pid).includes(`${runtime.cgroupParent}/`));
      } finally {
        await pods.close();
        await runtime.close();
      }
    });
  });
}

describe('A runtime of the tests leaves nothing behind', () => {
  it('if it is closed while pods run', async () => {
    const runtime = await Containerd.start();
    const pods = new Pods(runtime);
    const pid = await (await pods.runPod('running')).pid();
    await runtime.close();
    assert.equal(isRunning(pid), false);
    assert.equal(existsSync(runtime.folder), false);
    assert.deepEqual(groupsOf(runtime.cgroupParent), []);
  });

  it('if the process of the tests is killed', async () => {
    const program = `
      import { Containerd } from './support/containerd.mjs';
      import { Pods } from './support/pods.mjs';
      const runtime = await Containerd.start();
      const pod = await new Pods(runtime).runPod('running');
      console.log(JSON.stringify({ keeper: runtime.keeperPid, folder: runtime.folder, group: runtime.cgroupParent, pid: await pod.pid() }));
      setInterval(() => {}, 1000);`;
    const cwd = fileURLToPath(new URL('.', import.meta.url));
    const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
      ...{ cwd, stdio: ['ignore', 'pipe', 'inherit'] },
    });
    const [line] = await once(child.stdout, 'data');
    const { keeper, folder, group, pid } = JSON.parse(line);
    child.kill('SIGKILL');
    await once(child, 'exit');
    while (isRunning(keeper)) await new Promise((resolve) => setTimeout(resolve, 20));
    assert.equal(isRunning(pid), false);
    assert.equal(existsSync(folder), false);
    assert.deepEqual(groupsOf(group), []);
  });
});
