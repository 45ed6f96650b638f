// Bookings: records what the kubelet assigns to containers. A booking is a persistent grant until a
// container claims it.
import { randomUUID } from 'node:crypto';
import type { CpuSet, GrantInfo } from 'numalign';
import { anySignal } from 'numalign/tools';
import { NodeError } from '../base/errors.js';
import { type AllocationEnvironment, isAllocation, isClaimed } from '../placement/allocation.js';
import { type Booking, bookingOf, type DeviceManager, Exchange, unionOf } from './exchange.js';
import type { CpuAccount, CpuDevice } from './inventory.js';

const LOOK_MS = 100;

export interface BookingOptions {
  readonly manager: DeviceManager;
  readonly resource: string;
  /** How long a booking waits for the end of a pod that has its CPUs, in milliseconds. */
  readonly patienceMs: number;
  /** The least age of a booking that is released because the kubelet has forgotten it. */
  readonly graceMs: number;
  /** Ends waiting. */
  readonly signal: AbortSignal;
}

export class Bookings {
  readonly #manager: DeviceManager;
  readonly #resource: string;
  readonly #patienceMs: number;
  readonly #graceMs: number;
  readonly #signal: AbortSignal;
  // When this process last answered with a booking, by uid.
  readonly #answeredAt = new Map<string, number>();

  constructor({ manager, resource, patienceMs, graceMs, signal }: BookingOptions) {
    this.#manager = manager;
    this.#resource = resource;
    this.#patienceMs = patienceMs;
    this.#graceMs = graceMs;
    this.#signal = signal;
  }

  #allocations(): GrantInfo[] {
    return this.#manager.grants().filter((grant) => isAllocation(grant, this.#resource));
  }

  /** The CPUs at this moment. @throws ERR_STATE_CORRUPT if they are unknown */
  account(): CpuAccount {
    const { managedCPUs, reservedSystemCPUs, isolatedCPUs } = this.#manager.settings();
    return {
      grantable: managedCPUs.difference(reservedSystemCPUs).difference(isolatedCPUs),
      free: this.#manager.freeCpus(),
      allocated: unionOf(this.#allocations()),
    };
  }

  /**
   * Records the devices of each container, those of all containers or of none. A booking that no
   * container has claimed gives way: the kubelet assigns a device again once its pod has ended. A
   * booking with exactly these devices is used again.
   * @throws ERR_DEVICE_OFFLINE, ERR_DEVICE_HELD; like `adopt`
   */
  async book(containers: readonly (readonly CpuDevice[])[]): Promise<AllocationEnvironment[]> {
    const sets = containers.map(unionOf);
    this.#checkGrantable(containers.flat());
    await this.#waitForCpus(unionOf(containers.flat()));
    const booked = await Exchange.run(this.#manager, this.#resource, async (exchange) => {
      const all: AllocationEnvironment[] = [];
      for (const cpus of sets) all.push({ uid: await this.#bookOne(cpus, exchange), cpus });
      return all;
    });
    for (const { uid } of booked) this.#answeredAt.set(uid, Date.now());
    return booked;
  }

  /**
   * Records a booking again that has ended although its pod goes on: in another sandbox, or since a
   * restart of the machine. It absorbs what the plugin has booked on its CPUs, which the pod's
   * other containers have.
   * @throws ERR_DEVICE_HELD; like `adopt`
   */
  async restore({ uid, cpus }: AllocationEnvironment): Promise<void> {
    const { foreign } = this.#holders(cpus);
    if (foreign.length > 0) throw heldError(foreign, cpus);
    const before = this.#allocations()
      .filter((grant) => grant.cpus.intersects(cpus) || grant.uid === uid)
      .map(bookingOf);
    const whole = { uid, cpus: cpus.union(unionOf(before)) };
    await Exchange.run(this.#manager, this.#resource, (exchange) => exchange.replace(before, whole));
  }

  /**
   * Releases the bookings that no container has claimed and whose CPUs the kubelet has forgotten:
   * their pods have ended before they had containers.
   */
  async releaseForgotten(cpusInUse: CpuSet): Promise<void> {
    const latest = Date.now() - this.#graceMs;
    const allocations = this.#allocations();
    for (const uid of this.#answeredAt.keys()) {
      if (!allocations.some((grant) => grant.uid === uid)) this.#answeredAt.delete(uid);
    }
    for (const grant of allocations) {
      const at = Math.max(Date.parse(grant.admittedAt), this.#answeredAt.get(grant.uid) ?? 0);
      const isForgotten = !isClaimed(grant) && !grant.cpus.intersects(cpusInUse) && at <= latest;
      if (isForgotten) await this.#manager.release(grant.uid);
    }
  }

  #checkGrantable(devices: readonly CpuDevice[]): void {
    const { grantable } = this.account();
    const offline = devices.filter(({ cpus }) => !cpus.isSubsetOf(grantable));
    if (offline.length === 0) return;
    const ids = offline.map(({ id }) => id);
    throw new NodeError(
      'ERR_DEVICE_OFFLINE',
      `${ids.join(', ')}: offline, reserved or not managed any more`,
      {
        value: ids,
        valid: `CPUs ${grantable}`,
      },
    );
  }

  // The living grants of others, and the plugin's own that a container has claimed.
  #holders(cpus: CpuSet): { foreign: GrantInfo[]; claimed: GrantInfo[] } {
    const holders = this.#manager.grants().filter((grant) => grant.alive && grant.cpus.intersects(cpus));
    return {
      foreign: holders.filter((grant) => !isAllocation(grant, this.#resource)),
      claimed: holders.filter((grant) => isAllocation(grant, this.#resource) && isClaimed(grant)),
    };
  }

  // The kubelet assigns a device to another pod once the containers of the last one have ended. The
  // pod's cgroup may have processes a moment longer.
  async #waitForCpus(cpus: CpuSet): Promise<void> {
    const manager = this.#manager;
    const { foreign, claimed } = this.#holders(cpus);
    if (foreign.length > 0) throw heldError(foreign, cpus);
    if (claimed.length === 0) return;
    const waitEnd = anySignal(this.#signal, AbortSignal.timeout(this.#patienceMs));
    await new Promise<void>((resolve, reject) => {
      const end = (settle: () => void) => {
        clearInterval(timer);
        waitEnd.removeEventListener('abort', giveUp);
        manager.off('change', look);
        settle();
      };
      const giveUp = () => end(() => reject(heldError(claimed, cpus)));
      const look = () => {
        const now = this.#holders(cpus);
        if (now.foreign.length > 0) end(() => reject(heldError(now.foreign, cpus)));
        else if (now.claimed.length === 0) end(resolve);
      };
      // The kernel does not report the end of a cgroup of version 1.
      const timer = setInterval(look, LOOK_MS);
      manager.on('change', look);
      waitEnd.addEventListener('abort', giveUp);
      if (waitEnd.aborted) giveUp();
      else look();
    });
  }

  async #bookOne(cpus: CpuSet, exchange: Exchange): Promise<string> {
    const before: Booking[] = this.#allocations()
      .filter((grant) => !isClaimed(grant) && grant.cpus.intersects(cpus))
      .map(bookingOf);
    const same = before.find((booking) => booking.cpus.equals(cpus));
    if (same) return same.uid;
    const uid = randomUUID();
    await exchange.replace(before, { uid, cpus });
    // What an init container leaves only in part stays with its pod.
    for (const booking of before) {
      const rest = booking.cpus.difference(cpus);
      if (!rest.isEmpty) await exchange.adopt({ ...booking, cpus: rest });
    }
    return uid;
  }
}

function heldError(grants: readonly GrantInfo[], cpus: CpuSet): NodeError {
  const overlap = unionOf(grants).intersection(cpus);
  const names = grants.map(({ uid, name }) => `${name || 'a grant'} (${uid})`).join(', ');
  return new NodeError('ERR_DEVICE_HELD', `CPUs ${overlap} are held by ${names}`, {
    value: overlap.toString(),
    valid: 'CPUs that are not held',
  });
}
