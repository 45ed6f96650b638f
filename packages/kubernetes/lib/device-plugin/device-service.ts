// DeviceService: the answers of a device plugin: which devices there are, which go well together,
// and what a container gets.
import type { CpuSet } from 'numalign';
import { NodeError } from '../base/errors.js';
import type { Log } from '../base/log.js';
import type { FiledContainer } from '../kubelet/holdings.js';
import {
  type AllocatedContainer,
  type AllocationEnvironment,
  allocationEnvironment,
} from '../placement/allocation.js';
import type { Message } from '../protobuf/schema.js';
import { type BookingOptions, Bookings } from './bookings.js';
import { DeviceList, type DeviceStream } from './device-list.js';
import { unionOf } from './exchange.js';
import { type CpuDevice, type DeviceUnit, Inventory, isHealthy } from './inventory.js';
import type { PluginAnswers } from './plugin-server.js';
import { preferredDevices } from './preference.js';

export interface DeviceServiceOptions extends BookingOptions {
  readonly unit: DeviceUnit;
  readonly log: Log;
  /** Called when the kubelet asks for the list. */
  readonly listening: () => void;
  /** Called when the kubelet has ended the last stream of it. */
  readonly ended: () => void;
}

export class DeviceService implements PluginAnswers {
  readonly #options: DeviceServiceOptions;
  readonly #bookings: Bookings;
  readonly #inventory: Inventory;
  readonly #list: DeviceList;
  #allocating: Promise<unknown> = Promise.resolve();

  constructor(options: DeviceServiceOptions) {
    this.#options = options;
    this.#bookings = new Bookings(options);
    this.#inventory = new Inventory(options.unit);
    this.#list = new DeviceList(options.ended);
  }

  get isListening(): boolean {
    return this.#list.hasStreams;
  }

  /** Looks at the CPUs, and notifies the kubelet of changes. */
  update(): void {
    const { manager, resource, log } = this.#options;
    try {
      const account = this.#bookings.account();
      this.#inventory.update(manager.topology, account);
      this.#publish((device) => isHealthy(device, account));
    } catch (error) {
      // While it is unknown what is free, nothing may be assigned.
      this.#publish(() => false);
      log('error', `${resource}: it is unknown what is free: ${(error as Error).message}`);
    }
  }

  #publish(isGood: (device: CpuDevice) => boolean): void {
    this.#list.publish(this.#inventory.devices.map((device) => ({ ...device, isHealthy: isGood(device) })));
  }

  listAndWatch(stream: DeviceStream): void {
    this.#list.serve(stream);
    this.#options.listening();
  }

  #find(id: string): CpuDevice {
    const found = this.#inventory.find(id);
    if (found) return found;
    const { resource } = this.#options;
    throw new NodeError('ERR_UNKNOWN_DEVICE', `${resource} has no device ${JSON.stringify(id)}`, {
      value: id,
      valid: this.#inventory.ids,
    });
  }

  /**
   * Empty if there are fewer devices than requested: the kubelet then chooses by itself.
   * @throws ERR_DEVICE_REQUEST, ERR_UNKNOWN_DEVICE
   */
  preferredAllocation({ container_requests }: Message): Message {
    this.update();
    return { container_responses: container_requests.map((each: Message) => this.#preferred(each)) };
  }

  #preferred(request: Message): Message {
    const { unit, manager } = this.#options;
    const available = new Set<string>(request.available_deviceIDs);
    const mustInclude = new Set<string>(request.must_include_deviceIDs);
    const count: number = request.allocation_size;
    const isRight =
      count > 0 && mustInclude.size <= count && [...mustInclude].every((id) => available.has(id));
    if (!isRight) {
      throw new NodeError('ERR_DEVICE_REQUEST', `${count} devices, among them ${[...mustInclude]}`, {
        value: request,
        valid: 'at least one, and what must be included is available',
      });
    }
    const preference = preferredDevices(manager.topology, {
      unit,
      // A device that no longer exists is not preferred.
      available: [...available].flatMap((id) => this.#inventory.find(id) ?? []),
      mustInclude: [...mustInclude].map((id) => this.#find(id)),
      count,
    });
    return { deviceIDs: preference.map(({ id }) => id) };
  }

  /**
   * Records what each container gets, and returns its environment.
   * @throws ERR_DEVICE_REQUEST, ERR_UNKNOWN_DEVICE; like {@link Bookings.book}
   */
  allocate({ container_requests }: Message): Promise<Message> {
    const { resource, log } = this.#options;
    // One after the other: each changes what the next one finds.
    const answer = this.#allocating.then(() => this.#book(container_requests));
    this.#allocating = answer.catch((error: Error) =>
      log('warn', `an allocation of ${resource} is refused: ${error.message}`),
    );
    return answer.finally(() => this.update());
  }

  async #book(requests: readonly Message[]): Promise<Message> {
    this.update();
    const containers: CpuDevice[][] = requests.map(({ devicesIDs }) =>
      devicesIDs.map((id: string) => this.#find(id)),
    );
    const ids = containers.flat().map(({ id }) => id);
    const isRight = containers.every((devices) => devices.length > 0) && new Set(ids).size === ids.length;
    if (!isRight) {
      throw new NodeError('ERR_DEVICE_REQUEST', `no devices, or one twice: ${ids}`, {
        value: ids,
        valid: 'at least one device per container, each once',
      });
    }
    const booked = await this.#bookings.book(containers);
    return { container_responses: booked.map((each) => ({ envs: allocationEnvironment(each) })) };
  }

  /**
   * Records an allocation again, if the kubelet's checkpoint says that the container has these
   * devices.
   * @returns false if it does not
   * @throws like {@link Bookings.restore}
   */
  async restore(
    allocation: AllocationEnvironment,
    { podUid, name }: AllocatedContainer,
    devices: readonly FiledContainer[],
  ): Promise<boolean> {
    this.update();
    const containerDevices = devices.filter(
      (container) => container.uid === podUid && container.name === name,
    );
    if (!this.#cpusOf(containerDevices).equals(allocation.cpus)) return false;
    const restoration = this.#allocating.then(() => this.#bookings.restore(allocation));
    this.#allocating = restoration.catch(() => {});
    await restoration.finally(() => this.update());
    return true;
  }

  #cpusOf(containers: readonly FiledContainer[]): CpuSet {
    const devices = containers.flatMap(({ devices }) => devices[this.#options.resource] ?? []);
    return unionOf(devices.flatMap(({ id }) => this.#inventory.find(id) ?? []));
  }

  /**
   * Releases what the kubelet has forgotten: its checkpoint has exactly these devices. Failures are
   * logged.
   */
  forget(devices: readonly FiledContainer[]): void {
    const { resource, log } = this.#options;
    const cpusInUse = this.#cpusOf(devices);
    this.#allocating = this.#allocating
      .then(() => this.#bookings.releaseForgotten(cpusInUse))
      .catch((error: Error) =>
        log('warn', `what the kubelet has forgotten of ${resource} is not released: ${error.message}`),
      );
  }

  /** Ends the streams; resolves once no allocation is in progress. */
  async close(): Promise<void> {
    this.#list.close();
    await this.#allocating;
  }
}
