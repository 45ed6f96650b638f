// Running containers that get their own CPUs: with each release of containerd, NRI off.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, beforeEach, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { AttachmentKeeper, ContainerAttachment, ContainerRuntime } from '@numalign/kubernetes';
import { openManager } from 'numalign';
import { CRI_RELEASES } from './components.mjs';
import { Containerd } from './support/containerd.mjs';
import { Pods } from './support/pods.mjs';
import { allowedOf } from './support/process-view.mjs';

const MAIN = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));
const PERIOD = 100_000;
const CPU_LIMIT = { cpu_period: 50_000, cpu_quota: 50_000, cpu_shares: 512, memory_limit_in_bytes: 64 << 20 };

// The values in a container's cgroups outside its cpuset.
const FILES = {
  cpu: ['cpu.cfs_quota_us', 'cpu.cfs_period_us', 'cpu.shares', 'cpu.max', 'cpu.weight'],
  memory: ['memory.limit_in_bytes', 'memory.memsw.limit_in_bytes', 'memory.max', 'memory.swap.max'],
};

function limitsOf(pid) {
  const lines = readFileSync(`/proc/${pid}/cgroup`, 'utf8').trim().split('\n');
  const found = {};
  for (const [controller, files] of Object.entries(FILES)) {
    const [, , v1] = lines.map((line) => line.split(':')).find(([, name]) => name === controller) ?? [];
    const v2 = lines.find((line) => line.startsWith('0::'))?.slice('0::'.length);
    const folder = v1 === undefined ? `/sys/fs/cgroup${v2}` : `/sys/fs/cgroup/${controller}${v1}`;
    for (const file of files)
      if (existsSync(join(folder, file))) found[file] = readFileSync(join(folder, file), 'utf8').trim();
  }
  return found;
}

/** Waits until `look` answers true; the state's changes and the kernel's are seen by looking. */
async function until(look) {
  const deadline = Date.now() + 30_000;
  while (!(await look())) {
    assert.ok(Date.now() < deadline, `${look} did not come true`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

for (const release of CRI_RELEASES) {
  describe(`A container of containerd ${release}`, {
    skip: availableParallelism() < 2 && 'it needs two CPUs',
  }, () => {
    let containerd;
    let pods;
    let runtime;
    let manager;
    let logged;
    const log = (level, message) => logged.push(`${level}: ${message}`);
    const all = () => manager.topology.cpus;
    const attachmentOf = (container, options = {}) =>
      new ContainerAttachment({ manager, runtime, log, container, cpu: 1, ...options });
    const attach = async (container, options) => {
      const attachment = attachmentOf(container, options);
      await attachment.start();
      return attachment;
    };
    const cpusOf = async (pod) => (await pod.allowed()).cpus;

    before(async () => {
      containerd = await Containerd.start({ release, nri: false });
      runtime = new ContainerRuntime({ socketPath: containerd.socketPath });
    });
    after(async () => {
      runtime.close();
      await containerd.close();
    });
    let count = 0;
    beforeEach(async () => {
      logged = [];
      pods = new Pods(containerd);
      manager = await openManager({
        stateDir: join(containerd.folder, `state-${++count}`),
        sharedMember: false,
      });
    });
    afterEach(async () => {
      manager.close();
      await pods.close();
    });

    it('is found by its id, the first characters, its name, and the names of its pod', async () => {
      const pod = await pods.runPod('web', { namespace: 'shop', containerName: 'nginx' });
      await pods.runPod('web', { namespace: 'blog', containerName: 'nginx' });
      for (const text of [pod.containerId, pod.containerId.slice(0, 12), 'shop/web/nginx']) {
        const found = await runtime.find(text);
        assert.equal(found.id, pod.containerId);
        assert.equal(found.pid, await pod.pid());
        assert.equal(found.podUid, pod.uid);
        assert.equal(found.cpuset.folder, await pod.cpusetFolder());
        assert.equal(`${found.cpuset.effectiveCpus}`, await cpusOf(pod));
      }
      for (const text of ['nginx', 'web/nginx'])
        await assert.rejects(runtime.find(text), { code: 'ERR_CONTAINER_AMBIGUOUS' });
      await assert.rejects(runtime.find('shop/api/nginx'), { code: 'ERR_CONTAINER_UNKNOWN' });
      await pod.stop();
      await assert.rejects(runtime.find(pod.containerId), { code: 'ERR_CONTAINER_UNKNOWN' });
    });

    it('reports the runtime', async () => {
      const { name, version, apiVersion } = await runtime.version();
      assert.deepEqual([name, apiVersion], ['containerd', 'v1']);
      assert.ok(version.includes(containerd.version));
    });

    it('gets its own CPUs, which the others leave, and keeps quota, shares and memory', async () => {
      const pod = await pods.runPod('latency', { resources: CPU_LIMIT });
      const other = await pods.runPod('batch', { resources: CPU_LIMIT });
      const limits = limitsOf(await pod.pid());
      assert.ok(Object.values(limits).includes(`${64 << 20}`));
      // By its own limits.
      const { attached } = await attach('latency/main', { cpu: undefined });
      assert.equal(attached.cpus.size, 1);
      assert.deepEqual(attached.mems?.toArray(), [0]);
      assert.equal(await cpusOf(pod), `${attached.cpus}`);
      assert.equal(await cpusOf(other), `${all().difference(attached.cpus)}`);
      assert.deepEqual(limitsOf(await pod.pid()), limits);
      assert.deepEqual(limitsOf(await other.pid()), limits);
      const [grant] = manager.grants();
      assert.deepEqual(
        [grant.uid, grant.name, grant.owner.kind],
        [attached.grant, 'default/latency/main', 'cgroup'],
      );
      assert.equal(grant.memory[0].bytes, 64 << 20);
    });

    it('gives them back when it ends, and the others come back', async () => {
      const pod = await pods.runPod('latency');
      const other = await pods.runPod('batch');
      const attachment = await attach('latency/main');
      const keeper = new AttachmentKeeper({ attachment, manager, runtime, log, reconcilePeriodMs: PERIOD });
      await keeper.start();
      assert.notEqual(await cpusOf(other), `${all()}`);
      await pod.stop();
      await keeper.ended;
      assert.equal(await cpusOf(other), `${all()}`);
      assert.deepEqual(manager.grants(), []);
      await keeper.close();
    });

    it('gets them again if another program sets its cpuset through the runtime or the kernel', async () => {
      const pod = await pods.runPod('latency');
      const attachment = await attach('latency/main');
      const keeper = new AttachmentKeeper({ attachment, manager, runtime, log, reconcilePeriodMs: PERIOD });
      await keeper.start();
      const cpus = `${attachment.attached.cpus}`;
      await pod.update({ cpuset_cpus: `${all()}` });
      await until(async () => (await cpusOf(pod)) === cpus && logged.length > 0);
      assert.match(logged[0], /^warn: .* it has .* again$/);
      writeFileSync(join(await pod.cpusetFolder(), 'cpuset.cpus'), `${all()}`);
      await until(async () => (await cpusOf(pod)) === cpus && logged.length > 1);
      await keeper.close();
      // Left alone from here on.
      await pod.update({ cpuset_cpus: `${all()}` });
      assert.equal(await cpusOf(pod), `${all()}`);
    });

    it('is alone on them even if another container starts meanwhile', async () => {
      await pods.runPod('latency');
      const attachment = await attach('latency/main');
      const keeper = new AttachmentKeeper({ attachment, manager, runtime, log, reconcilePeriodMs: PERIOD });
      await keeper.start();
      const others = `${all().difference(attachment.attached.cpus)}`;
      for (const name of ['first', 'second', 'third']) {
        const pod = await pods.runPod(name);
        await until(async () => (await cpusOf(pod)) === others);
      }
      await keeper.close();
    });

    it('gets its former CPUs if another process gives its grant back', async () => {
      const pod = await pods.runPod('latency');
      const other = await pods.runPod('batch');
      const attachment = await attach('latency/main');
      const keeper = new AttachmentKeeper({ attachment, manager, runtime, log, reconcilePeriodMs: PERIOD });
      await keeper.start();
      await manager.release(attachment.attached.grant);
      await keeper.ended;
      assert.equal(await cpusOf(pod), `${all()}`);
      assert.equal(await cpusOf(other), `${all()}`);
    });

    it('is restored, like the others, once the attachment is released', async () => {
      const pod = await pods.runPod('latency');
      const other = await pods.runPod('batch');
      const attachment = await attach('latency/main');
      await attachment.release();
      assert.equal(await cpusOf(pod), `${all()}`);
      assert.equal(await cpusOf(other), `${all()}`);
      assert.deepEqual(manager.grants(), []);
    });

    it('leaves the others alone on request', async () => {
      await pods.runPod('latency');
      const other = await pods.runPod('batch');
      await attach('latency/main', { only: true });
      assert.equal(await cpusOf(other), `${all()}`);
    });

    it('moves others back to their former CPUs, even after a crash by the next process', async () => {
      const pod = await pods.runPod('latency');
      const other = await pods.runPod('batch');
      await attach('latency/main');
      await pod.stop();
      await until(() => !manager.grants().some(({ alive }) => alive));
      assert.notEqual(await cpusOf(other), `${all()}`);
      const next = await pods.runPod('next');
      const attachment = await attach('next/main');
      await attachment.release();
      assert.equal(await cpusOf(other), `${all()}`);
      assert.equal(await cpusOf(next), `${all()}`);
    });

    it('is not attached if another container would have no CPU left, and nothing changes', async () => {
      const pod = await pods.runPod('latency');
      const plan = manager.plan({ containers: [{ name: 'main', limits: { cpu: 1, memory: 1 } }] });
      const cpu = `${plan.pod?.containers[0].cpus ?? all().first}`;
      const pinned = await pods.runPod('pinned', { resources: { cpuset_cpus: cpu } });
      const other = await pods.runPod('batch');
      await assert.rejects(attach('latency/main'), { code: 'ERR_CONTAINER_UNMOVABLE' });
      assert.deepEqual(manager.grants(), []);
      assert.equal(await cpusOf(pod), `${all()}`);
      assert.equal(await cpusOf(other), `${all()}`);
      assert.equal(await cpusOf(pinned), cpu);
    });

    it('is not attached twice', async () => {
      await pods.runPod('latency');
      const { attached } = await attach('latency/main');
      await assert.rejects(attach('latency/main'), (error) => {
        assert.equal(error.code, 'ERR_CONTAINER_ATTACHED');
        assert.equal(error.details.value, attached.grant);
        return true;
      });
    });

    it('needs an explicit number without a limit of whole CPUs', async () => {
      await pods.runPod('half', { resources: { cpu_period: 100_000, cpu_quota: 50_000 } });
      await assert.rejects(attach('half/main', { cpu: undefined }), (error) => {
        assert.equal(error.code, 'ERR_NO_EXCLUSIVE_CPUS');
        assert.equal(error.details.value, 0.5);
        return true;
      });
      await pods.runPod('unlimited');
      await assert.rejects(attach('unlimited/main', { cpu: undefined }), { code: 'ERR_NO_EXCLUSIVE_CPUS' });
      assert.deepEqual(manager.grants(), []);
    });

    it('is rejected in the words of numalign if there are not enough CPUs', async () => {
      const pod = await pods.runPod('greedy');
      await assert.rejects(attach('greedy/main', { cpu: all().size + 1 }), { code: 'ERR_INSUFFICIENT_CPUS' });
      assert.equal(await cpusOf(pod), `${all()}`);
    });

    it('takes the CPUs of a persistent grant, which stays when it ends', async () => {
      const pod = await pods.runPod('latency');
      const grant = await manager.acquire({ cpu: 1, owner: 'persistent', enforcement: 'members' });
      const attachment = await attach('latency/main', { cpu: undefined, grant: grant.uid });
      assert.equal(await cpusOf(pod), `${grant.cpus}`);
      const keeper = new AttachmentKeeper({ attachment, manager, runtime, log, reconcilePeriodMs: 200 });
      await keeper.start();
      await pod.stop();
      await keeper.ended;
      assert.equal(manager.grants().length, 1);
      await assert.rejects(attach('latency/main', { grant: 'unknown' }), { code: 'ERR_CONTAINER_UNKNOWN' });
      await pods.runPod('other');
      await assert.rejects(attach('other/main', { grant: 'unknown' }), { code: 'ERR_UNKNOWN_GRANT' });
      const own = await manager.acquire({ cpu: 1, enforcement: 'members' }).catch((error) => error);
      if (own.uid)
        await assert.rejects(attach('other/main', { grant: own.uid }), { code: 'ERR_OWNER_ALIVE' });
      await manager.release(grant.uid);
    });

    describe('by the command', () => {
      const run = (...args) => {
        const child = spawn(process.execPath, [MAIN, 'attach', ...args], {
          stdio: ['ignore', 'pipe', 'pipe'],
        });
        const output = { out: '', err: '' };
        child.stdout.on('data', (text) => {
          output.out += text;
        });
        child.stderr.on('data', (text) => {
          output.err += text;
        });
        const end = once(child, 'close').then(([code]) => ({ code, ...output }));
        return { child, end };
      };
      const common = () => ['--runtime-endpoint', containerd.socketPath, '--state-dir', manager.stateDir];

      it('is attached and reported, as text and as JSON', async () => {
        const pod = await pods.runPod('latency');
        const other = await pods.runPod('batch');
        const json = await run('--container', 'latency/main', '--cpu', '1', '--json', ...common()).end;
        assert.equal(json.code, 0, json.err);
        const found = JSON.parse(json.out);
        assert.equal(found.container.id, pod.containerId);
        assert.equal(found.cpus, await cpusOf(pod));
        assert.equal(found.cgroup.path, await pod.cpusetFolder());
        assert.deepEqual(found.others, [
          { id: other.containerId, before: `${all()}`, after: await cpusOf(other) },
        ]);
        await manager.release(found.grant);
        const text = await run('--container', 'batch/main', '--cpu', '1', '--only', ...common()).end;
        assert.match(text.out, /^default\/batch\/main \([0-9a-f]+\) is on CPUs \d+: grant [0-9a-f-]+\n$/);
      });

      it('is followed until it ends', async () => {
        const pod = await pods.runPod('latency');
        const other = await pods.runPod('batch');
        const { child, end } = run('--container', 'latency/main', '--cpu', '1', '--follow', ...common());
        await once(child.stdout, 'data');
        await pod.stop();
        assert.equal((await end).code, 0);
        assert.equal(await cpusOf(other), `${all()}`);
      });

      it('stays unchanged if a signal ends the command', async () => {
        const pod = await pods.runPod('latency');
        const { child, end } = run('--container', 'latency/main', '--cpu', '1', '--follow', ...common());
        await once(child.stdout, 'data');
        child.kill('SIGTERM');
        assert.equal((await end).code, 0);
        assert.equal(await cpusOf(pod), `${manager.grants()[0].cpus}`);
      });

      it('is refused in one line with a code', async () => {
        const { code, err } = await run('--container', 'unknown', ...common()).end;
        assert.equal(code, 1);
        assert.match(
          err,
          /^numalign-node: no running container is "unknown": .* \[ERR_CONTAINER_UNKNOWN\]\n$/,
        );
        const absent = await run('--container', 'x', '--runtime-endpoint', '/nowhere.sock').end;
        assert.equal(absent.code, 1);
        assert.match(absent.err, /\[ERR_RUNTIME_UNREACHABLE\]\n$/);
        assert.equal((await run('--cpu', '1').end).code, 2);
        assert.equal((await run('--container', 'x', '--cpu', '1.5').end).code, 2);
      });
    });

    it('keeps its CPUs while the runtime is killed and started again', async () => {
      const pod = await pods.runPod('latency');
      const attachment = await attach('latency/main');
      const pid = await pod.pid();
      await containerd.restart('SIGKILL');
      assert.equal(allowedOf(pid).cpus, `${attachment.attached.cpus}`);
      assert.equal(await attachment.reconcile(), true);
      await attachment.release();
      assert.equal(allowedOf(pid).cpus, `${all()}`);
    });
  });
}
