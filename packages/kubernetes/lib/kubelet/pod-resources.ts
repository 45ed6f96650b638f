// PodResources: asks the kubelet what it has assigned to containers. See Kubernetes' PodResources
// API, v1. Without its socket, reads the kubelet's checkpoint files.
import type { ServiceError } from '@grpc/grpc-js';
import { CpuSet } from 'numalign';
import { NodeError } from '../base/errors.js';
import { fileIdentity } from '../base/folder-watch.js';
import { grpc } from '../base/late-packages.js';
import { serviceDefinition } from '../grpc/service.js';
import { type Message, Schema } from '../protobuf/schema.js';
import { readCpuState, readDeviceState, readMemoryState } from './checkpoint-files.js';
import {
  type DeviceHolding,
  holdingPods,
  holdingsOfFiles,
  holdingsOfList,
  type KubeletStates,
  type PodHoldings,
} from './holdings.js';

export const POD_RESOURCES_SOCKET = '/var/lib/kubelet/pod-resources/kubelet.sock';
export const KUBELET_FOLDER = '/var/lib/kubelet';
export const DEVICE_FOLDER = '/var/lib/kubelet/device-plugins';

export interface PodResourcesOptions {
  /** Default: {@link POD_RESOURCES_SOCKET}. */
  readonly socket?: string;
  /** The folder of cpu_manager_state. Default: {@link KUBELET_FOLDER}. */
  readonly stateFolder?: string;
  /** The folder of kubelet_internal_checkpoint. Default: that of device plugins. */
  readonly deviceFolder?: string;
  /** The time for each call, in milliseconds. Default: 5000. */
  readonly timeoutMs?: number;
}

// The limit of the kubelet's own clients.
const MOST_BYTES = 16 * 1024 * 1024;

const nodesOf = (topology: Message | null) => (topology?.nodes ?? []).map(({ ID }: Message) => ID as number);

function cpusOf(ids: readonly number[]): CpuSet {
  try {
    return CpuSet.from(ids);
  } catch (cause) {
    throw new NodeError('ERR_POD_RESOURCES', `the kubelet lists ${(cause as Error).message}`, {
      value: ids,
      cause,
    });
  }
}

function devicesOf(devices: readonly Message[]): Record<string, DeviceHolding[]> {
  const all = new Map<string, DeviceHolding[]>();
  // There is one entry per NUMA node, or one per device.
  for (const { resource_name, device_ids, topology } of devices) {
    const found = device_ids.map((id: string) => ({ id, nodes: nodesOf(topology) }));
    all.set(resource_name, [...(all.get(resource_name) ?? []), ...found]);
  }
  return Object.fromEntries(all);
}

function podOf({ namespace, name, containers }: Message): PodHoldings {
  return {
    namespace,
    name,
    containers: containers.map((container: Message) => ({
      name: container.name,
      cpus: cpusOf(container.cpu_ids),
      memory: container.memory.map(({ memory_type, size, topology }: Message) => ({
        nodes: nodesOf(topology),
        type: memory_type,
        bytes: size,
      })),
      devices: devicesOf(container.devices),
    })),
  };
}

export class PodResources {
  readonly #socket: string;
  readonly #stateFolder: string;
  readonly #deviceFolder: string;
  readonly #timeoutMs: number;
  readonly #last: { -readonly [Name in keyof KubeletStates]: KubeletStates[Name] } = {};
  readonly #schema = new Schema('podresources');

  constructor(options: PodResourcesOptions = {}) {
    this.#socket = options.socket ?? POD_RESOURCES_SOCKET;
    this.#stateFolder = options.stateFolder ?? KUBELET_FOLDER;
    this.#deviceFolder = options.deviceFolder ?? DEVICE_FOLDER;
    this.#timeoutMs = options.timeoutMs ?? 5_000;
  }

  async #ask(method: string, request: Message): Promise<Message> {
    const { credentials, makeClientConstructor } = grpc();
    const Client = makeClientConstructor(
      serviceDefinition(this.#schema, 'v1.PodResourcesLister'),
      'PodResources',
    );
    // One client per call: a kubelet that has restarted is reached without delay.
    const client = new Client(`unix://${this.#socket}`, credentials.createInsecure(), {
      'grpc.max_receive_message_length': MOST_BYTES,
    });
    try {
      return await new Promise<Message>((resolve, reject) => {
        const deadline = Date.now() + this.#timeoutMs;
        client[method]!(request, { deadline }, (error: ServiceError | null, reply: Message) =>
          error ? reject(error) : resolve(reply),
        );
      });
    } catch (cause) {
      const { code, details } = cause as ServiceError;
      const name = grpc().status[code] ?? String(code);
      throw new NodeError('ERR_POD_RESOURCES', `the kubelet does not answer ${method}: ${name}: ${details}`, {
        value: name,
        valid: 'OK',
        cause,
      });
    } finally {
      client.close();
    }
  }

  /**
   * The listed holdings of each container. Kubelets before 1.21 also list the CPUs of the shared
   * pool; {@link holdings} leaves them out.
   * @throws ERR_POD_RESOURCES: `details.value` is the name of gRPC's status
   */
  async list(): Promise<PodHoldings[]> {
    const { pod_resources } = await this.#ask('List', {});
    return pod_resources.map(podOf);
  }

  /**
   * All CPUs that the kubelet can assign.
   * @throws ERR_POD_RESOURCES; its value is UNIMPLEMENTED before 1.21
   */
  async allocatableCpus(): Promise<CpuSet> {
    const { cpu_ids } = await this.#ask('GetAllocatableResources', {});
    return cpusOf(cpu_ids);
  }

  /**
   * One pod, for kubelets since 1.27.
   * @throws ERR_POD_RESOURCES; its value is UNIMPLEMENTED for older ones
   */
  async get(namespace: string, name: string): Promise<PodHoldings | null> {
    const { pod_resources } = await this.#ask('Get', { pod_namespace: namespace, pod_name: name });
    return pod_resources && podOf(pod_resources);
  }

  /**
   * What the kubelet has assigned exclusively, from its socket and its managers' files. If nothing
   * answers on the socket, from its files alone, which name pods by their uids. Empty
   * without either: no kubelet has run. `withoutFile`: gets the error of a file of memory or
   * devices that cannot be used, instead of the caller; what this object last read in it counts.
   * @throws ERR_POD_RESOURCES if it answers with an error, or if only the shared CPUs would show
   *   which are exclusive; ERR_KUBELET_STATE, ERR_SYSCALL for a file
   */
  async holdings(withoutFile?: (error: Error) => void): Promise<PodHoldings[]> {
    const list = await this.#list();
    // Read after the list: a notice follows for assignments in between.
    const cpu = await readCpuState(this.#stateFolder);
    const memory = () => this.#usable('memory', readMemoryState(this.#stateFolder), withoutFile);
    if (!list) {
      const devices = this.#usable('devices', readDeviceState(this.#deviceFolder), withoutFile);
      const [ofMemory, ofDevices] = await Promise.all([memory(), devices]);
      return holdingsOfFiles({ cpu, memory: ofMemory, devices: ofDevices });
    }
    if (cpu) return holdingsOfList(list, cpu, await memory());
    if (list.some(({ containers }) => containers.some(({ cpus }) => !cpus.isEmpty))) {
      // A kubelet that knows this call only lists exclusive CPUs.
      await this.allocatableCpus();
    }
    return holdingPods(list);
  }

  // A newer kubelet may write what is not known here.
  async #usable<Name extends 'memory' | 'devices'>(
    name: Name,
    file: Promise<KubeletStates[Name]>,
    withoutFile?: (error: Error) => void,
  ): Promise<KubeletStates[Name]> {
    try {
      this.#last[name] = await file;
    } catch (error) {
      if (!withoutFile) throw error;
      withoutFile(error as Error);
    }
    return this.#last[name];
  }

  // Undefined if there is no kubelet now.
  async #list(): Promise<PodHoldings[] | undefined> {
    if (fileIdentity(this.#socket) === undefined) return undefined;
    try {
      return await this.list();
    } catch (error) {
      if ((error as NodeError).details?.value === 'UNAVAILABLE') return undefined;
      throw error;
    }
  }
}
