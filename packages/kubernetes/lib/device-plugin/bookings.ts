// Bookings: puts on record what the kubelet gives to containers. A booking is a persistent grant
// until a container claims it.
import { randomUUID } from 'node:crypto';
import type { CpuSet, GrantInfo } from 'numalign';
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
  /** How old a booking is at least that is given back because the kubelet has forgotten it. */
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
  // When this process has answered with a booking last, by its uid.
  readonly #answeredAt = new Map<string, number>();

  constructor({ manager, resource, patienceMs, graceMs, signal }: BookingOptions) {
    this.#manager = manager;
    this.#resource = resource;
    this.#patienceMs = patienceMs;
    this.#graceMs = graceMs;
    this.#signal = signal;
  }

  #own(): GrantInfo[] {
    return this.#manager.grants().filter((grant) => isAllocation(grant, this.#resource));
  }

  /** How the CPUs are now. @throws ERR_STATE_CORRUPT where that cannot be known */
  account(): CpuAccount {
    const { managedCPUs, reservedSystemCPUs, isolatedCPUs } = this.#manager.settings();
    return {
      grantable: managedCPUs.difference(reservedSystemCPUs).difference(isolatedCPUs),
      free: this.#manager.freeCpus(),
      allocated: unionOf(this.#own()),
    };
  }

  /**
   * Puts the devices of each container on record, those of all or of none. A booking that no
   * container has claimed gives way: the kubelet gives a device again once its pod has ended. The
   * same devices as such a booking's are that booking.
   * @throws ERR_DEVICE_OFFLINE, ERR_DEVICE_HELD; as `adopt`
   */
  async book(containers: readonly (readonly CpuDevice[])[]): Promise<AllocationEnvironment[]> {
    const sets = containers.map(unionOf);
    this.#checkGrantable(containers.flat());
    await this.#takeable(unionOf(containers.flat()));
    const booked = await Exchange.run(this.#manager, this.#resource, async (exchange) => {
      const all: AllocationEnvironment[] = [];
      for (const cpus of sets) all.push({ uid: await this.#bookOne(cpus, exchange), cpus });
      return all;
    });
    for (const { uid } of booked) this.#answeredAt.set(uid, Date.now());
    return booked;
  }

  /**
   * Puts a booking on record again that has ended though its pod goes on: in another sandbox, or
   * since the machine was started again. What the plugin has booked on its CPUs becomes a part of it:
   * the pod's other containers have that.
   * @throws ERR_DEVICE_HELD; as `adopt`
   */
  async restore({ uid, cpus }: AllocationEnvironment): Promise<void> {
    const { foreign } = this.#holders(cpus);
    if (foreign.length > 0) throw held(foreign, cpus);
    const before = this.#own()
      .filter((grant) => grant.cpus.intersects(cpus) || grant.uid === uid)
      .map(bookingOf);
    const whole = { uid, cpus: cpus.union(unionOf(before)) };
    await Exchange.run(this.#manager, this.#resource, (exchange) => exchange.replace(before, whole));
  }

  /**
   * Gives back the bookings that no container has claimed and of whose CPUs the kubelet remembers
   * none: their pods have ended before they had containers.
   */
  async releaseForgotten(remembered: CpuSet): Promise<void> {
    const latest = Date.now() - this.#graceMs;
    const own = this.#own();
    for (const uid of this.#answeredAt.keys()) {
      if (!own.some((grant) => grant.uid === uid)) this.#answeredAt.delete(uid);
    }
    for (const grant of own) {
      const at = Math.max(Date.parse(grant.admittedAt), this.#answeredAt.get(grant.uid) ?? 0);
      const isForgotten = !isClaimed(grant) && !grant.cpus.intersects(remembered) && at <= latest;
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

  // Others' grants, and the plugin's own that a container has: those of the living.
  #holders(cpus: CpuSet): { foreign: GrantInfo[]; claimed: GrantInfo[] } {
    const holders = this.#manager.grants().filter((grant) => grant.alive && grant.cpus.intersects(cpus));
    return {
      foreign: holders.filter((grant) => !isAllocation(grant, this.#resource)),
      claimed: holders.filter((grant) => isAllocation(grant, this.#resource) && isClaimed(grant)),
    };
  }

  // The kubelet gives a device to another pod once the containers of the last have ended: the pod's
  // cgroup may have processes for a moment longer.
  async #takeable(cpus: CpuSet): Promise<void> {
    const manager = this.#manager;
    const { foreign, claimed } = this.#holders(cpus);
    if (foreign.length > 0) throw held(foreign, cpus);
    if (claimed.length === 0) return;
    const patience = AbortSignal.any([this.#signal, AbortSignal.timeout(this.#patienceMs)]);
    await new Promise<void>((resolve, reject) => {
      const end = (settle: () => void) => {
        clearInterval(timer);
        patience.removeEventListener('abort', give);
        manager.off('change', look);
        settle();
      };
      const give = () => end(() => reject(held(claimed, cpus)));
      const look = () => {
        const now = this.#holders(cpus);
        if (now.foreign.length > 0) end(() => reject(held(now.foreign, cpus)));
        else if (now.claimed.length === 0) end(resolve);
      };
      // Of the end of a cgroup of version 1 the kernel does not tell.
      const timer = setInterval(look, LOOK_MS);
      manager.on('change', look);
      patience.addEventListener('abort', give);
      if (patience.aborted) give();
      else look();
    });
  }

  async #bookOne(cpus: CpuSet, exchange: Exchange): Promise<string> {
    const before: Booking[] = this.#own()
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

function held(grants: readonly GrantInfo[], cpus: CpuSet): NodeError {
  const taken = unionOf(grants).intersection(cpus);
  const names = grants.map(({ uid, name }) => `${name || 'a grant'} (${uid})`).join(', ');
  return new NodeError('ERR_DEVICE_HELD', `CPUs ${taken} are held by ${names}`, {
    value: taken.toString(),
    valid: 'CPUs that nobody holds',
  });
}
