// ContainerRuntime: the containers of a node and their cpusets, through the Container Runtime
// Interface.
import { existsSync } from 'node:fs';
import type { CpuSet, NodeSet } from 'numalign';
import { NodeError } from '../base/errors.js';
import { isOfContainer } from '../cgroups/cgroup-path.js';
import { type Cpuset, cpusetOfProcess, readCpuset } from '../cgroups/cpuset.js';
import type { Message } from '../protobuf/schema.js';
import { chooseContainer, describeContainer, type NamedContainer } from './container-names.js';
import { findContainerProcess } from './container-process.js';
import { RuntimeClient, type RuntimeClientOptions } from './runtime-client.js';
import { findRuntimeSocket } from './runtime-sockets.js';

export interface RuntimeVersion {
  /** For example `containerd`, `cri-o`. */
  readonly name: string;
  readonly version: string;
  readonly apiVersion: string;
}

/** The runtime's listing of a container. */
export interface RuntimeContainer extends NamedContainer {
  /** The pod's uid in Kubernetes. */
  readonly podUid: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

/** A running container, with facts of the kernel. */
export interface RunningContainer extends RuntimeContainer {
  /** Its first process, in this process's pid namespace. */
  readonly pid: number;
  readonly cpuset: Cpuset;
}

export interface ContainersFilter {
  /** Only containers with these labels. */
  readonly labels?: Readonly<Record<string, string>>;
  /** Only containers of the sandbox with this id. */
  readonly sandboxId?: string;
}

/** What is left out stays as it is. */
export interface CpusetChoice {
  readonly cpus?: CpuSet;
  readonly mems?: NodeSet;
}

// ContainerState in the protocol.
const RUNNING = 1;
/** The errors of {@link ContainerRuntime.inspect} for a container that has ended. */
const ENDED = new Set(['ERR_CONTAINER_ENDED', 'ERR_CGROUP', 'ERR_RUNTIME_NOT_FOUND']);

export class ContainerRuntime {
  readonly #client: RuntimeClient;
  // A container keeps its first process while it runs.
  readonly #pids = new Map<string, number>();

  /**
   * `socketPath`: default: the result of {@link findRuntimeSocket}. Connects at the first call. All
   * calls throw like {@link RuntimeClient.call}.
   * @throws ERR_INVALID_OPTION, ERR_RUNTIME_UNREACHABLE
   */
  constructor({ socketPath = findRuntimeSocket(), ...options }: Partial<RuntimeClientOptions> = {}) {
    this.#client = new RuntimeClient({ socketPath, ...options });
  }

  get socketPath(): string {
    return this.#client.socketPath;
  }

  async version(): Promise<RuntimeVersion> {
    const found = await this.#client.call('Version');
    const { runtime_name: name, runtime_version: version, runtime_api_version: apiVersion } = found;
    return { name, version, apiVersion };
  }

  /** The running containers. */
  async containers({ labels, sandboxId }: ContainersFilter = {}): Promise<RuntimeContainer[]> {
    const filter = {
      state: { state: RUNNING },
      ...(labels && { label_selector: labels }),
      ...(sandboxId !== undefined && { pod_sandbox_id: sandboxId }),
    };
    const [{ containers }, { items }] = await Promise.all([
      this.#client.call('ListContainers', { filter }),
      this.#client.call('ListPodSandbox'),
    ]);
    const pods = new Map<string, Message>(items.map((item: Message) => [item.id, item.metadata ?? {}]));
    return (containers as Message[]).map((each) => {
      // A pod that has just been removed is no longer listed.
      const pod = pods.get(each.pod_sandbox_id) ?? {};
      return {
        id: each.id,
        name: each.metadata?.name ?? '',
        pod: pod.name ?? '',
        namespace: pod.namespace ?? '',
        podUid: pod.uid ?? '',
        labels: each.labels,
        annotations: each.annotations,
      };
    });
  }

  /**
   * A running container by its id, a prefix of the id, or its name: `container`, `pod/container` or
   * `namespace/pod/container`.
   * @throws ERR_CONTAINER_UNKNOWN, ERR_CONTAINER_AMBIGUOUS; like {@link inspect}
   */
  async find(text: string): Promise<RunningContainer> {
    return this.inspect(chooseContainer(await this.containers(), text));
  }

  /**
   * Its process and cpuset now.
   * @throws ERR_CONTAINER_ENDED if it no longer runs, or this process cannot see its processes in
   *   its own cgroup; ERR_CGROUP if no cgroups are mounted here
   */
  async inspect(container: RuntimeContainer): Promise<RunningContainer> {
    const { id } = container;
    const hit = this.#cpusetOf(id, this.#pids.get(id));
    if (hit) return { ...container, ...hit };
    this.#pids.delete(id);
    const reportedPid = await this.#pidOf(id);
    const found = this.#cpusetOf(id, reportedPid) ?? this.#cpusetOf(id, findContainerProcess(id));
    if (found) {
      this.#pids.set(id, found.pid);
      return { ...container, ...found };
    }
    const message = `${describeContainer(container)} has no process in its own cgroup that can be seen here`;
    throw new NodeError('ERR_CONTAINER_ENDED', message, {
      value: id,
      valid: 'a container that runs, and the pid and cgroup namespaces of the host',
    });
  }

  /**
   * Whether it still has a process. The kernel knows this before the runtime reports it.
   * @throws like {@link RuntimeClient.call}
   */
  async isRunning(container: RuntimeContainer): Promise<boolean> {
    try {
      await this.inspect(container);
      return true;
    } catch (error) {
      if (ENDED.has((error as NodeError).code)) return false;
      throw error;
    }
  }

  /**
   * Sets CPUs and memory nodes of a container by UpdateContainerResources, as the kubelet does, and
   * returns what the kernel then has. Sends only what is given: runtimes leave quota, shares and
   * memory unchanged if a request has 0.
   * @throws ERR_CPUSET_MISMATCH if the kernel has other CPUs or memory nodes afterwards; like
   *   {@link inspect}
   */
  async setCpuset(container: RunningContainer, { cpus, mems }: CpusetChoice): Promise<Cpuset> {
    const linux = {
      ...(cpus && { cpuset_cpus: cpus.toString() }),
      ...(mems && { cpuset_mems: mems.toString() }),
    };
    await this.#client.call('UpdateContainerResources', { container_id: container.id, linux });
    const cpuset = readCpuset(container.cpuset.folder);
    const flaws = [
      ...(cpus && !cpuset.effectiveCpus.equals(cpus) ? [`CPUs ${cpuset.effectiveCpus}, not ${cpus}`] : []),
      ...(mems && !cpuset.effectiveMems.equals(mems)
        ? [`memory nodes ${cpuset.effectiveMems}, not ${mems}`]
        : []),
    ];
    if (flaws.length === 0) return cpuset;
    const message = `the runtime has updated ${describeContainer(container)}, but the kernel has ${flaws.join(' and ')}`;
    throw new NodeError('ERR_CPUSET_MISMATCH', message, {
      value: { cpus: `${cpuset.effectiveCpus}`, mems: `${cpuset.effectiveMems}` },
      valid: linux,
    });
  }

  close(): void {
    this.#client.close();
  }

  async #pidOf(id: string): Promise<number | undefined> {
    const { info } = await this.#client.call('ContainerStatus', { container_id: id, verbose: true });
    return pidIn(info.info);
  }

  // The pid may belong to another process by now, or the runtime may be wrong.
  #cpusetOf(id: string, pid: number | undefined): Pick<RunningContainer, 'pid' | 'cpuset'> | undefined {
    if (pid === undefined || !existsSync(`/proc/${pid}`)) return undefined;
    const cpuset = cpusetOfProcess(pid);
    return isOfContainer(cpuset.folder, id) ? { pid, cpuset } : undefined;
  }
}

// containerd and CRI-O put it there; the protocol does not define the content.
function pidIn(text: unknown): number | undefined {
  try {
    const { pid } = JSON.parse(text as string) as { pid?: unknown };
    return typeof pid === 'number' && Number.isSafeInteger(pid) && pid > 0 ? pid : undefined;
  } catch {
    return undefined;
  }
}
