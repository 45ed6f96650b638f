// Kubelet: a test kubelet without an API server, on a test containerd, which removes it with all
// its files.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { RuntimeClient } from '@numalign/kubernetes';
import { run } from '../../../../test/vm/debian-packages.mjs';
import { IMAGE } from '../containers/image.mjs';
import { makeGroups } from '../containers/support/cgroups.mjs';
import { prepareKubelet } from './build.mjs';

const PATIENCE_MS = 60_000;
// One may be under way, the next finds what runs, and an update waits for one more.
const LOOKS = 3;
// It would set them for the machine: in its namespace it finds files that say what it wants.
const SYSCTLS = {
  'vm/overcommit_memory': 1,
  'vm/panic_on_oom': 0,
  'kernel/panic': 10,
  'kernel/panic_on_oops': 1,
  'kernel/keys/root_maxkeys': 1_000_000,
  'kernel/keys/root_maxbytes': 25_000_000,
};

/** Polls until the result is neither undefined nor false. */
export async function until(what, ask, patienceMs = PATIENCE_MS) {
  for (const deadline = Date.now() + patienceMs; ; ) {
    const answer = await ask();
    if (answer !== undefined && answer !== false) return answer;
    if (Date.now() > deadline) throw new Error(`not within ${patienceMs / 1000} s: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

// 0: it has ended, or was removed since it was listed.
async function pidOfContainer(client, id) {
  try {
    const { info } = await client.call('ContainerStatus', { container_id: id, verbose: true });
    return JSON.parse(info.info).pid;
  } catch (error) {
    if (error.code === 'ERR_RUNTIME_NOT_FOUND') return 0;
    throw error;
  }
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  return port;
}

// Eviction and the removal of images would act on this machine's disk.
const configuration = ({ manifests, cgroupRoot, ports, cpuManagerPolicy, topologyManagerPolicy }) => ({
  apiVersion: 'kubelet.config.k8s.io/v1beta1',
  kind: 'KubeletConfiguration',
  ...{ address: '127.0.0.1', port: ports[0], readOnlyPort: ports[1], healthzPort: 0 },
  authentication: { anonymous: { enabled: true }, webhook: { enabled: false } },
  authorization: { mode: 'AlwaysAllow' },
  ...{ staticPodPath: manifests, fileCheckFrequency: '1s' },
  ...{ cgroupDriver: 'cgroupfs', cgroupRoot, cgroupsPerQOS: true, enforceNodeAllocatable: ['pods'] },
  ...{ cpuManagerPolicy, cpuManagerReconcilePeriod: '5s', topologyManagerPolicy },
  reservedSystemCPUs: '0',
  evictionHard: {
    ...{ 'memory.available': '0%', 'nodefs.available': '0%' },
    ...{ 'nodefs.inodesFree': '0%', 'imagefs.available': '0%' },
  },
  ...{ imageGCHighThresholdPercent: 100, failSwapOn: false, makeIPTablesUtilChains: false },
});

export class Kubelet {
  /** The kubelet's folder, `/var/lib/kubelet` where it runs. */
  folder;
  devicePlugins;
  podResourcesSocket;
  #runtime;
  #program;
  #manifests;
  #options;
  #readOnlyPort;
  #child;

  /** `runtime`: a Containerd; the policies: the kubelet's, which reserves CPU 0. */
  static async start(runtime, options = {}) {
    const kubelet = new Kubelet(runtime, prepareKubelet(), options);
    kubelet.#mount();
    await kubelet.start();
    return kubelet;
  }

  constructor(runtime, program, { cpuManagerPolicy = 'none', topologyManagerPolicy = 'best-effort' } = {}) {
    this.#runtime = runtime;
    this.#program = program;
    this.#options = { cpuManagerPolicy, topologyManagerPolicy };
    this.folder = join(runtime.folder, 'var-lib/kubelet');
    this.devicePlugins = join(this.folder, 'device-plugins');
    this.podResourcesSocket = join(this.folder, 'pod-resources/kubelet.sock');
    this.#manifests = join(runtime.folder, 'manifests');
    for (const folder of [this.folder, this.#manifests, join(runtime.folder, 'var-log')]) {
      mkdirSync(folder, { recursive: true });
    }
  }

  get log() {
    return readFileSync(join(this.#runtime.folder, 'kubelet.log'), 'utf8');
  }

  #inside(command, args) {
    const namespace = `--mount=/proc/${this.#runtime.keeperPid}/ns/mnt`;
    return ['nsenter', [namespace, '--wdns=/', command, ...args]];
  }

  // Some of its paths are compiled in.
  #mount() {
    const { folder } = this.#runtime;
    const bind = (from, to) => run(...this.#inside('mount', ['--bind', from, to]));
    bind(join(folder, 'var-lib'), '/var/lib');
    bind(join(folder, 'var-log'), '/var/log');
    for (const [name, value] of Object.entries(SYSCTLS)) {
      const file = join(folder, name.replaceAll('/', '.'));
      writeFileSync(file, `${value}\n`);
      bind(file, `/proc/sys/${name}`);
    }
  }

  /** Starts it with its earlier state; returns once it serves. */
  async start() {
    const { folder, socketPath, cgroupParent } = this.#runtime;
    const config = join(folder, 'kubelet.json');
    const ports = [await freePort(), await freePort()];
    this.#readOnlyPort = ports[1];
    const facts = { manifests: this.#manifests, cgroupRoot: cgroupParent, ports };
    writeFileSync(config, JSON.stringify(configuration({ ...facts, ...this.#options })));
    const sockets = [join(this.devicePlugins, 'kubelet.sock'), this.podResourcesSocket];
    for (const socket of sockets) rmSync(socket, { force: true });
    const [program, args] = this.#inside(this.#program, [
      ...[`--config=${config}`, '--root-dir=/var/lib/kubelet', '--hostname-override=node', '--v=2'],
      ...['--container-runtime=remote', `--container-runtime-endpoint=unix://${socketPath}`],
      `--pod-infra-container-image=${IMAGE}`,
    ]);
    const log = openSync(join(folder, 'kubelet.log'), 'a');
    const joinGroups = makeGroups(cgroupParent).map((group) => `echo $$ > ${group}/cgroup.procs`);
    const script = [...joinGroups, 'exec "$0" "$@"'].join('\n');
    this.#child = spawn('sh', ['-ec', script, program, ...args], { stdio: ['ignore', log, log] });
    closeSync(log);
    const child = this.#child;
    await until('the kubelet serves', () => {
      if (child.exitCode !== null || child.signalCode !== null)
        throw new Error(`the kubelet has ended:\n${this.log.slice(-4000)}`);
      return sockets.every(existsSync);
    });
  }

  /** Ends it; its pods continue. */
  async kill(signal = 'SIGKILL') {
    const child = this.#child;
    this.#child = undefined;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const end = once(child, 'exit');
    child.kill(signal);
    await end;
  }

  /**
   * Makes it run a pod of one container, which waits. `resources`: its requests and limits; `init`:
   * those of an init container, which prints its environment; `env`: variables that the pod sets
   * itself.
   */
  addPod(name, resources, { init, env = {} } = {}) {
    const container = (name, resources, command) => ({
      ...{ name, image: IMAGE, imagePullPolicy: 'Never', command },
      resources: { limits: resources, requests: resources },
      env: Object.entries(env).map(([name, value]) => ({ name, value })),
    });
    const pod = {
      ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace: 'default' } },
      spec: {
        ...{ hostNetwork: true, terminationGracePeriodSeconds: 1 },
        ...(init && { initContainers: [container('init', init, ['env'])] }),
        containers: [container('main', resources, ['sleep', 'infinity'])],
      },
    };
    // Beside, then renamed: it reads half-written files.
    const beside = join(this.#runtime.folder, `${name}.json`);
    writeFileSync(beside, JSON.stringify(pod));
    renameSync(beside, join(this.#manifests, `${name}.json`));
  }

  /**
   * Makes it end a pod, once it has nothing left to do for it: it starts a removed pod again if an
   * update of the pod still waits for the next look at the containers, and may refuse the next pod
   * the devices that it gives to this one meanwhile.
   */
  async removePod(name) {
    const before = await this.#looks();
    await until(
      'the kubelet has looked at its containers',
      async () => (await this.#looks()) >= before + LOOKS,
    );
    rmSync(join(this.#manifests, `${name}.json`));
  }

  // How often it has asked the runtime for its containers, about once a second.
  async #looks() {
    const metrics = await (await fetch(`http://127.0.0.1:${this.#readOnlyPort}/metrics`)).text();
    return Number(/^kubelet_pleg_relist_duration_seconds_count (\d+)$/m.exec(metrics)[1]);
  }

  /** The names of the pods that it is to run. */
  get podNames() {
    return readdirSync(this.#manifests).map((file) => file.slice(0, -'.json'.length));
  }

  /** The pid of the pod's running container; undefined if there is none. */
  async pidOf(name) {
    const client = new RuntimeClient({ socketPath: this.#runtime.socketPath, timeoutMs: 10_000 });
    try {
      // The kubelet names a static pod after its node, too.
      const label_selector = { 'io.kubernetes.pod.name': `${name}-node` };
      const { containers } = await client.call('ListContainers', { filter: { label_selector } });
      for (const { id } of containers) {
        const pid = await pidOfContainer(client, id);
        if (pid > 0 && existsSync(`/proc/${pid}`)) return pid;
      }
      return undefined;
    } finally {
      client.close();
    }
  }

  /** Its file of devices: `{ devices, time }`, ids by resource and the time of the file. */
  deviceFile() {
    const file = join(this.devicePlugins, 'kubelet_internal_checkpoint');
    try {
      const { Data } = JSON.parse(readFileSync(file, 'utf8'));
      return { devices: Data.RegisteredDevices ?? {}, time: statSync(file).mtimeMs };
    } catch {
      return { devices: {}, time: 0 };
    }
  }

  /**
   * Waits for a list of devices on file that is newer than `since`, an earlier deviceFile(). The kubelet
   * asks for the list before it knows the devices: a static pod that comes in between is refused for
   * good, or runs without them.
   */
  devicesAfter({ time: since }, resource) {
    return until(`the kubelet has devices of ${resource}`, () => {
      const { devices, time } = this.deviceFile();
      return time > since && devices[resource]?.length > 0;
    });
  }

  /** Ends the pod's sandbox without the kubelet. */
  async stopSandbox(name) {
    const client = new RuntimeClient({ socketPath: this.#runtime.socketPath, timeoutMs: 10_000 });
    try {
      const label_selector = { 'io.kubernetes.pod.name': `${name}-node` };
      const { items } = await client.call('ListPodSandbox', { filter: { label_selector } });
      for (const { id } of items) await client.call('StopPodSandbox', { pod_sandbox_id: id });
    } finally {
      client.close();
    }
  }

  /** The environment that the init container of a pod has printed. */
  initEnvironmentOf(name) {
    const pods = join(this.#runtime.folder, 'var-log/pods');
    const pod = readdirSync(pods).find((folder) => folder.startsWith(`default_${name}-node_`));
    const lines = readFileSync(join(pods, pod, 'init/0.log'), 'utf8').split('\n');
    // Time, stream, and whether the line is whole come first.
    const pairs = lines.filter(Boolean).map((line) => line.split(' ').slice(3).join(' '));
    return Object.fromEntries(pairs.map((pair) => pair.split(/=(.*)/s).slice(0, 2)));
  }

  /** The environment of the pod's container, once it runs. */
  async environmentOf(name) {
    const pid = await until(`pod ${name} runs`, () => this.pidOf(name));
    const pairs = readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0').filter(Boolean);
    return Object.fromEntries(pairs.map((pair) => pair.split(/=(.*)/s).slice(0, 2)));
  }
}
