// Exchange: replaces grants of allocations by others, all of them or none.
import { CpuSet, type GrantInfo, type Manager } from 'numalign';
import { allocationName, parseAllocationName } from '../placement/allocation.js';

/** What the device plugin needs of a manager. */
export type DeviceManager = Pick<
  Manager,
  'topology' | 'settings' | 'freeCpus' | 'grants' | 'adopt' | 'release' | 'on' | 'off'
>;

/** An allocation on record. */
export interface Booking {
  readonly uid: string;
  /** The ids of the allocations that it stands for, the newest last. */
  readonly uids: readonly string[];
  readonly cpus: CpuSet;
}

export const bookingOf = ({ uid, name, cpus }: GrantInfo): Booking => ({
  uid,
  uids: parseAllocationName(name)?.uids ?? [uid],
  cpus,
});

export const unionOf = (all: readonly { readonly cpus: CpuSet }[]) =>
  all.reduce((union, { cpus }) => union.union(cpus), CpuSet.EMPTY);

export class Exchange {
  readonly #manager: DeviceManager;
  readonly #resource: string;
  readonly #additions: Booking[] = [];
  readonly #removals: Booking[] = [];

  private constructor(manager: DeviceManager, resource: string) {
    this.#manager = manager;
    this.#resource = resource;
  }

  /** Undoes the steps of `body` if it fails, as far as no other grant has the CPUs by then. */
  static async run<T>(
    manager: DeviceManager,
    resource: string,
    body: (exchange: Exchange) => Promise<T>,
  ): Promise<T> {
    const exchange = new Exchange(manager, resource);
    try {
      return await body(exchange);
    } catch (error) {
      // The caller must see the first error.
      for (const { uid } of exchange.#additions) await manager.release(uid).catch(() => {});
      for (const booking of exchange.#removals) await exchange.#adopt(booking).catch(() => {});
      throw error;
    }
  }

  /** Records a booking. @throws like Manager.adopt */
  async adopt(booking: Booking): Promise<void> {
    await this.#adopt(booking);
    this.#additions.push(booking);
  }

  /** Replaces other bookings, and stands for them from then on. @throws like Manager.adopt */
  async replace(before: readonly Booking[], { uid, cpus }: Omit<Booking, 'uids'>): Promise<void> {
    for (const booking of before) {
      await this.#manager.release(booking.uid);
      this.#removals.push(booking);
    }
    const uids = new Set(before.flatMap(({ uids }) => uids));
    uids.delete(uid);
    await this.adopt({ uid, uids: [...uids, uid], cpus });
  }

  async #adopt({ uid, uids, cpus }: Booking): Promise<void> {
    const name = allocationName({ resource: this.#resource, uids });
    await this.#manager.adopt({ uid, name, containers: [{ name: 'main', cpus }] }, { owner: 'persistent' });
  }
}
