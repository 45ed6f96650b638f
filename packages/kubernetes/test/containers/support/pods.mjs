// Pods: pods of one container, run by a container runtime like by the kubelet.
import { existsSync, mkdirSync, mkdtempSync, readFileSync, watch } from 'node:fs';
import { join } from 'node:path';
import { RuntimeClient } from '@numalign/kubernetes';
import { IMAGE } from '../image.mjs';
import { allowedIn, allowedOf, cpusetFolderOf } from './process-view.mjs';

// There are no network plugins: the node's network.
const namespace_options = { network: 2, pid: 1, ipc: 2 };
const SEEN = '/seen';
// The shell first records what it sees; the last file shows that all are complete.
const KEEP = `cat /proc/$$/status > ${SEEN}/status; env > ${SEEN}/env; : > ${SEEN}/done`;
const WAIT = 'trap exit TERM; sleep infinity & wait';
const SEEN_MS = 180_000;
// A machine that is emulated, and busy, takes that long.
const CALL_MS = 240_000;

let count = 0;

/** Waits for a file. The kernel tells of it. */
async function waitForFile(folder, name) {
  const path = join(folder, name);
  const signal = AbortSignal.timeout(SEEN_MS);
  await new Promise((resolve, reject) => {
    const watcher = watch(folder, () => look());
    const look = () => {
      if (!existsSync(path)) return;
      watcher.close();
      resolve();
    };
    signal.addEventListener('abort', () => {
      watcher.close();
      reject(new Error(`${path} has not come`));
    });
    look();
  });
}

export class Pods {
  #runtime;
  #client;
  #pods = new Set();

  /** `runtime`: a Containerd. */
  constructor(runtime) {
    this.#runtime = runtime;
    this.#client = new RuntimeClient({ socketPath: runtime.socketPath, timeoutMs: CALL_MS });
  }

  /** A call of runtime.v1.RuntimeService. */
  call(method, request) {
    return this.#client.call(method, request);
  }

  /**
   * A running pod with one container. `resources`: the container's, in the form of CRI. `command`:
   * a line for the shell, after it has recorded what its first instruction saw. `sandboxResources`:
   * of the whole pod. If the container cannot run, the pod is removed.
   */
  async runPod(name, options = {}) {
    const pod = await this.createPod(name, options);
    try {
      await pod.start();
    } catch (error) {
      await pod.remove();
      throw error;
    }
    return pod;
  }

  /** Like {@link runPod}, before the container starts. */
  async createPod(name, options = {}) {
    const { namespace = 'default', uid = `${name}-${process.pid}-${++count}` } = options;
    const { annotations, labels, sandboxResources } = options;
    const sandboxConfig = {
      metadata: { name, uid, namespace, attempt: 0 },
      ...{ annotations, labels },
      linux: {
        cgroup_parent: options.cgroupParent ?? this.#runtime.cgroupParent,
        security_context: { namespace_options },
        ...(sandboxResources && { resources: sandboxResources }),
      },
    };
    const { pod_sandbox_id } = await this.call('RunPodSandbox', { config: defined(sandboxConfig) });
    const pod = new Pod(this, { name, uid, namespace }, pod_sandbox_id, defined(sandboxConfig), () => {
      this.#pods.delete(pod);
    });
    this.#pods.add(pod);
    try {
      await pod.createContainer(options);
    } catch (error) {
      await pod.remove();
      throw error;
    }
    return pod;
  }

  /** Removes those that are left. */
  async removeAll() {
    for (const pod of [...this.#pods]) await pod.remove();
  }

  /** Removes those that are left, and ends the connection. */
  async close() {
    await this.removeAll();
    this.#client.close();
  }

  /** A folder to be mounted at /seen. */
  newSeenFolder() {
    const folder = join(this.#runtime.folder, 'seen');
    mkdirSync(folder, { recursive: true });
    return mkdtempSync(join(folder, 'container-'));
  }
}

const defined = (value) => Object.fromEntries(Object.entries(value).filter(([, each]) => each !== undefined));

export class Pod {
  name;
  uid;
  namespace;
  sandboxId;
  containerName;
  containerId;
  #pods;
  #sandboxConfig;
  #seenFolder;
  #attempt = 0;
  #onRemove;

  constructor(pods, names, sandboxId, sandboxConfig, onRemove) {
    Object.assign(this, names);
    this.sandboxId = sandboxId;
    this.#pods = pods;
    this.#sandboxConfig = sandboxConfig;
    this.#onRemove = onRemove;
  }

  /** The pod's container, or its successor after an end; see {@link Pods.runPod}. */
  async createContainer({ containerName = 'main', resources = { cpu_shares: 1024 }, ...options }) {
    const { command = WAIT, envs = {}, mounts = [], containerAnnotations, containerLabels } = options;
    this.containerName = containerName;
    const seenFolder = this.#pods.newSeenFolder();
    const config = {
      metadata: { name: containerName, attempt: this.#attempt++ },
      image: { image: IMAGE },
      command: ['/bin/sh', '-c', `${KEEP}; ${command}`],
      envs: Object.entries(envs).map(([key, value]) => ({ key, value })),
      mounts: [{ container_path: SEEN, host_path: seenFolder }, ...mounts],
      ...{ annotations: containerAnnotations, labels: containerLabels },
      linux: { resources, security_context: { namespace_options } },
    };
    const { container_id } = await this.#pods.call('CreateContainer', {
      pod_sandbox_id: this.sandboxId,
      config: defined(config),
      sandbox_config: this.#sandboxConfig,
    });
    this.containerId = container_id;
    this.#seenFolder = seenFolder;
  }

  async start() {
    await this.#pods.call('StartContainer', { container_id: this.containerId });
  }

  /** The container's first process. */
  async pid() {
    const { info } = await this.#pods.call('ContainerStatus', {
      container_id: this.containerId,
      verbose: true,
    });
    return JSON.parse(info.info).pid;
  }

  /** The CPUs and memory nodes that the container's first process may use now: `{ cpus, mems }`. */
  async allowed() {
    return allowedOf(await this.pid());
  }

  /** `{ cpus, mems, env }` as the container's first instruction saw them. */
  async seen() {
    await this.waitFor('done');
    const read = (name) => readFileSync(join(this.#seenFolder, name), 'utf8');
    const pairs = read('env').split('\n').filter(Boolean);
    const env = Object.fromEntries(pairs.map((pair) => pair.split(/=(.*)/s).slice(0, 2)));
    return { ...allowedIn(read('status')), env };
  }

  /** Waits for a file that the container's command puts into /seen. */
  waitFor(name) {
    return waitForFile(this.#seenFolder, name);
  }

  /** The folder of the container's cpuset. */
  async cpusetFolder() {
    return cpusetFolderOf(await this.pid());
  }

  /** An update like the kubelet's: `linux` is CRI's LinuxContainerResources. */
  async update(linux) {
    await this.#pods.call('UpdateContainerResources', { container_id: this.containerId, linux });
  }

  /** Runs a command in the container: `{ stdout, stderr, exitCode }`. */
  async exec(...cmd) {
    const { stdout, stderr, exit_code } = await this.#pods.call('ExecSync', {
      ...{ container_id: this.containerId, cmd, timeout: 30 },
    });
    return { stdout: `${stdout}`, stderr: `${stderr}`, exitCode: exit_code };
  }

  /** Ends the container; the pod stays. */
  async stop(timeout = 0) {
    await this.#pods.call('StopContainer', { container_id: this.containerId, timeout });
  }

  /** Ends and removes the container; the pod stays. */
  async removeContainer() {
    await this.stop();
    await this.#pods.call('RemoveContainer', { container_id: this.containerId });
  }

  /** Ends and removes the whole pod. */
  async remove() {
    await this.#pods.call('StopPodSandbox', { pod_sandbox_id: this.sandboxId });
    await this.#pods.call('RemovePodSandbox', { pod_sandbox_id: this.sandboxId });
    this.#onRemove();
  }
}
