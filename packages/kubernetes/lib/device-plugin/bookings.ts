// Bookings: puts on record what the kubelet gives to containers. A booking is a persistent grant
// until a container claims it.
import { randomUUID } from 'node:crypto';
import { CpuSet, type GrantInfo, type Manager } from 'numalign';
import { NodeError } from '../base/errors.js';
import {
  type AllocationEnvironment,
  allocationName,
  isAllocation,
  isClaimed,
  parseAllocationName,
} from '../placement/allocation.js';
import type { CpuAccount, CpuDevice } from './inventory.js';

/** What the device plugin asks of a manager. */
export type DeviceManager = Pick<
  Manager,
  'topology' | 'settings' | 'freeCpus' | 'grants' | 'adopt' | 'release' | 'on' | 'off'
>;

interface Booking {
  readonly uid: string;
  /** Of the allocations that it stands for. */
  readonly uids: readonly string[];
  readonly cpus: CpuSet;
}

const LOOK_MS = 100;

const union = (sets: readonly CpuSet[]) => sets.reduce((all, cpus) => all.union(cpus), CpuSet.EMPTY);

export interface BookingOptions {
  readonly manager: DeviceManager;
  readonly resource: string;
  /** How long a booking waits for the end of a pod that has its CPUs, in milliseconds. */
  readonly patienceMs: number;
  /** Ends waiting. */
  readonly signal: AbortSignal;
}

export class Bookings {
  readonly #manager: DeviceManager;
  readonly #resource: string;
  readonly #patienceMs: number;
  readonly #signal: AbortSignal;

  constructor({ manager, resource, patienceMs, signal }: BookingOptions) {
    this.#manager = manager;
    this.#resource = resource;
    this.#patienceMs = patienceMs;
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
      allocated: union(this.#own().map(({ cpus }) => cpus)),
    };
  }

  /**
   * Puts the devices of each container on record, those of all or of none. A booking that no
   * container has claimed gives way: the kubelet gives a device again once its pod has ended. The
   * same devices as such a booking's are that booking.
   * @throws ERR_DEVICE_OFFLINE, ERR_DEVICE_HELD; as `adopt`
   */
  async book(containers: readonly (readonly CpuDevice[])[]): Promise<AllocationEnvironment[]> {
    const sets = containers.map((devices) => union(devices.map(({ cpus }) => cpus)));
    this.#checkGrantable(containers.flat());
    await this.#takeable(union(sets));
    const made: Booking[] = [];
    const released: Booking[] = [];
    try {
      const booked: AllocationEnvironment[] = [];
      for (const cpus of sets) booked.push({ uid: await this.#bookOne(cpus, made, released), cpus });
      return booked;
    } catch (error) {
      await this.#putBack(made, released);
      throw error;
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

  async #bookOne(cpus: CpuSet, made: Booking[], released: Booking[]): Promise<string> {
    const before = this.#own()
      .filter((grant) => !isClaimed(grant) && grant.cpus.intersects(cpus))
      .map(bookingOf);
    const same = before.find((booking) => booking.cpus.equals(cpus));
    if (same) return same.uid;
    for (const booking of before) {
      await this.#manager.release(booking.uid);
      released.push(booking);
    }
    const uid = randomUUID();
    const adopt = async (booking: Booking) => {
      await this.#adopt(booking);
      made.push(booking);
    };
    await adopt({ uid, uids: [...new Set(before.flatMap(({ uids }) => uids)), uid], cpus });
    // What an init container leaves only in part stays with its pod.
    for (const booking of before) {
      const rest = booking.cpus.difference(cpus);
      if (!rest.isEmpty) await adopt({ ...booking, cpus: rest });
    }
    return uid;
  }

  async #adopt({ uid, uids, cpus }: Booking): Promise<void> {
    const name = allocationName({ resource: this.#resource, uids });
    await this.#manager.adopt({ uid, name, containers: [{ name: 'main', cpus }] }, { owner: 'persistent' });
  }

  // As far as nobody else has the CPUs by now. What went wrong first is what the caller must hear of.
  async #putBack(made: readonly Booking[], released: readonly Booking[]): Promise<void> {
    for (const { uid } of made) await this.#manager.release(uid).catch(() => {});
    for (const booking of released) await this.#adopt(booking).catch(() => {});
  }
}

const bookingOf = ({ uid, name, cpus }: GrantInfo): Booking => ({
  uid,
  uids: parseAllocationName(name)?.uids ?? [uid],
  cpus,
});

function held(grants: readonly GrantInfo[], cpus: CpuSet): NodeError {
  const taken = union(grants.map((grant) => grant.cpus)).intersection(cpus);
  const names = grants.map(({ uid, name }) => `${name || 'a grant'} (${uid})`).join(', ');
  return new NodeError('ERR_DEVICE_HELD', `CPUs ${taken} are held by ${names}`, {
    value: taken.toString(),
    valid: 'CPUs that nobody holds',
  });
}
