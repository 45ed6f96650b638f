// DevicePlugin: offers the machine's CPUs or cores to the kubelet as devices, so the kubelet needs
// no CPU manager. See Kubernetes' device plugin API, v1beta1.
import { isAbsolute, join } from 'node:path';
import type { Condition } from '../base/condition.js';
import { NodeError } from '../base/errors.js';
import { FolderWatch, fileIdentity } from '../base/folder-watch.js';
import type { Log } from '../base/log.js';
import { reported } from '../base/reported.js';
import { Rounds } from '../base/rounds.js';
import { readDeviceState } from '../kubelet/checkpoint-files.js';
import { DEVICE_CHECKPOINT } from '../kubelet/device-checkpoint.js';
import type { AllocatedContainer, AllocationEnvironment } from '../placement/allocation.js';
import { Schema } from '../protobuf/schema.js';
import { DeviceService } from './device-service.js';
import type { DeviceManager } from './exchange.js';
import { DEVICE_UNITS, type DeviceUnit } from './inventory.js';
import { PluginServer } from './plugin-server.js';
import { KUBELET_SOCKET, register } from './registration.js';

/** The kubelet's folder of device plugins. */
export const DEVICE_PLUGINS = '/var/lib/kubelet/device-plugins';

export interface DevicePluginOptions {
  /** The caller closes it; {@link DevicePlugin.close} does not. */
  readonly manager: DeviceManager;
  /**
   * The name that pods ask for: a domain and a name. Default: `numalign.io/cpu` or
   * `numalign.io/core`.
   */
  readonly resource?: string;
  /** What a device is. Default: `cpu`. */
  readonly unit?: DeviceUnit;
  /** Default: {@link DEVICE_PLUGINS}. It may appear later. */
  readonly folder?: string;
  /**
   * How long an allocation waits for the end of a pod that has its CPUs, in milliseconds: the
   * kubelet assigns them again as soon as the containers have ended. Default: 3000.
   */
  readonly patienceMs?: number;
  /**
   * The milliseconds after which the plugin registers again if a running kubelet has ended the
   * stream of devices, which happens if another plugin offers the resource. Default: 10,000.
   */
  readonly returnMs?: number;
  /**
   * The milliseconds after which an allocation is released that no container has claimed and the
   * kubelet has forgotten: its pod has ended before it had containers. Default: 60,000.
   */
  readonly graceMs?: number;
  readonly log: Log;
}

const RESOURCE = /^[a-z0-9]([a-z0-9.-]*[a-z0-9])?\/[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$/;
const EVENTS = ['change', 'hotplug', 'drift'] as const;
// A healthy kubelet asks for the devices at once.
const CALL_BACK_MS = 10_000;

function checkOption(isRight: boolean, name: string, value: unknown, valid: string): void {
  if (isRight) return;
  throw new NodeError('ERR_INVALID_OPTION', `${name} must be ${valid}, not ${String(value)}`, {
    value,
    valid,
  });
}

/**
 * Offers devices to a kubelet, and records what it assigns to containers. What creates the
 * containers pins them: see `placement/allocation.ts`. A container must only ask for one of
 * numalign's resources: the kubelet would set the environment of only one.
 * Kubelets without Kubernetes' change 112597 send the path of the socket as `:authority`, which
 * Node's HTTP/2 servers refuse: they register the plugin, but never see a device. The log says so.
 */
export class DevicePlugin {
  readonly resource: string;
  readonly unit: DeviceUnit;
  readonly #manager: DeviceManager;
  readonly #folder: string;
  readonly #returnMs: number;
  readonly #log: Log;
  readonly #schema = new Schema('deviceplugin');
  readonly #service: DeviceService;
  readonly #watch: FolderWatch;
  readonly #rounds = new Rounds(() => this.#follow());
  readonly #checkpoints = new Rounds(() => this.#readCheckpoint());
  readonly #closing = new AbortController();
  #server: PluginServer | undefined;
  // The identity of the socket of the kubelet that knows the plugin.
  #kubelet: string | undefined;
  #timer: NodeJS.Timeout | undefined;

  /** @throws ERR_INVALID_OPTION */
  constructor(options: DevicePluginOptions) {
    const log = reported(options.log);
    const { manager, unit = 'cpu', folder = DEVICE_PLUGINS } = options;
    const { resource = `numalign.io/${unit}`, patienceMs = 3_000 } = options;
    const { returnMs = 10_000, graceMs = 60_000 } = options;
    checkOption(DEVICE_UNITS.includes(unit), 'unit', unit, DEVICE_UNITS.join(' or '));
    checkOption(
      RESOURCE.test(resource),
      'resource',
      resource,
      'a domain and a name, such as numalign.io/cpu',
    );
    checkOption(isAbsolute(folder), 'folder', folder, 'an absolute path');
    for (const [name, value] of Object.entries({ patienceMs, returnMs, graceMs })) {
      checkOption(value >= 0, name, value, 'a number of milliseconds');
    }
    this.resource = resource;
    this.unit = unit;
    this.#manager = manager;
    this.#folder = folder;
    this.#returnMs = returnMs;
    this.#log = log;
    const { signal } = this.#closing;
    this.#service = new DeviceService({
      manager,
      resource,
      unit,
      patienceMs,
      graceMs,
      signal,
      log,
      listening: () => clearTimeout(this.#timer),
      ended: () => this.#return(),
    });
    this.#watch = new FolderWatch({
      folder,
      changed: (name) => {
        if (name === DEVICE_CHECKPOINT) void this.#checkpoints.ask();
        else void this.#rounds.ask();
      },
      failed: (error) => log('error', `${folder} cannot be watched: ${error.message}`),
    });
  }

  /**
   * Serves, and registers as soon as there is a kubelet. Call it only once.
   * @throws ERR_SOCKET_PATH if the folder's path is too long for a socket in it; what the kernel
   *   refuses
   */
  async start(): Promise<void> {
    for (const event of EVENTS) this.#manager.on(event, this.#look);
    this.#look();
    this.#warnOfLastCpu();
    try {
      this.#watch.start();
      if (fileIdentity(this.#folder) !== undefined) await this.#serve();
      else this.#log('info', `${this.resource} waits for a kubelet: there is no ${this.#folder}`);
    } catch (error) {
      await this.close();
      throw error;
    }
    void this.#rounds.ask();
  }

  /** Whether a kubelet follows the list of devices; it may not have read the first list yet. */
  get isListed(): boolean {
    return this.#service.isListening;
  }

  /** Whether the kubelet follows the list of devices. */
  get condition(): Condition {
    const isMet = this.isListed;
    const text = `the kubelet ${isMet ? 'follows' : 'does not follow'} the list of ${this.resource}`;
    return { part: 'device-plugin', isMet, isVital: false, text };
  }

  /**
   * Records an allocation again that has ended although its pod goes on: its containers are created
   * again in another sandbox, or after a restart of the machine. The kubelet does not allocate them
   * again. Its checkpoint must say that the container has these CPUs.
   * @returns false if it does not: a pod may set any environment
   * @throws ERR_DEVICE_HELD if another grant has them; ERR_KUBELET_STATE, ERR_SYSCALL for the
   *   checkpoint; like Manager.adopt
   */
  async restore(allocation: AllocationEnvironment, container: AllocatedContainer): Promise<boolean> {
    const devices = await readDeviceState(this.#folder);
    return this.#service.restore(allocation, container, devices ?? []);
  }

  /**
   * Ends the service; the kubelet then keeps the devices as unhealthy for 5 minutes. Records stay.
   */
  async close(): Promise<void> {
    for (const event of EVENTS) this.#manager.off(event, this.#look);
    this.#closing.abort();
    this.#watch.close();
    await this.#rounds.end();
    await this.#checkpoints.end();
    clearTimeout(this.#timer);
    await this.#service.close();
    this.#server?.close();
    this.#server = undefined;
  }

  // The shared pool must keep a CPU.
  #warnOfLastCpu(): void {
    const { reservedSystemCPUs, strictCPUReservation } = this.#manager.settings();
    if (!reservedSystemCPUs.isEmpty && !strictCPUReservation) return;
    this.#log(
      'warn',
      `no CPU is reserved and shared: an allocation of ${this.resource} that takes the last shared one is refused; set reservedSystemCPUs`,
    );
  }

  readonly #look = () => this.#service.update();

  // Serves again if the kubelet has emptied the folder, and registers with a new kubelet.
  async #follow(): Promise<void> {
    const { signal } = this.#closing;
    try {
      if (fileIdentity(this.#folder) === undefined) return;
      if (!this.#server?.isReachable) await this.#serve();
      const kubelet = fileIdentity(join(this.#folder, KUBELET_SOCKET));
      if (kubelet === undefined || kubelet === this.#kubelet) return;
      const { endpoint } = this.#server!;
      await register(this.#schema, { folder: this.#folder, endpoint, resource: this.resource }, signal);
      this.#kubelet = kubelet;
      this.#log('info', `${this.resource} is registered with the kubelet`, { endpoint });
      this.#awaitCallBack();
    } catch (error) {
      if (signal.aborted) return;
      this.#log('error', `${this.resource} cannot be registered: ${(error as Error).message}`);
    }
  }

  // An unusable file is ignored: the kubelet reports it itself.
  async #readCheckpoint(): Promise<void> {
    const devices = await readDeviceState(this.#folder).catch(() => undefined);
    if (devices) this.#service.forget(devices);
  }

  async #serve(): Promise<void> {
    this.#server?.close();
    this.#server = undefined;
    this.#kubelet = undefined;
    const prefix = `numalign-${this.resource.replace('/', '-')}`;
    this.#server = await PluginServer.listen(this.#folder, prefix, this.#schema, this.#service);
  }

  #schedule(ms: number, action: () => void): void {
    clearTimeout(this.#timer);
    if (!this.#closing.signal.aborted) this.#timer = setTimeout(action, ms).unref();
  }

  #awaitCallBack(): void {
    if (this.#service.isListening) return;
    this.#schedule(CALL_BACK_MS, () =>
      this.#log(
        'warn',
        `the kubelet has registered ${this.resource}, but does not ask for its devices: kubelets without Kubernetes' change 112597 send an :authority that Node refuses`,
      ),
    );
  }

  // A kubelet that has ended returns with a new socket.
  #return(): void {
    if (this.#kubelet === undefined) return;
    this.#schedule(this.#returnMs, () => {
      this.#log('warn', `the kubelet has ended the stream of ${this.resource}: it registers again`);
      this.#kubelet = undefined;
      void this.#rounds.ask();
    });
  }
}
