// MemoryStore: the assignments of a simulated machine, in one object that no other process shares.
import type { Assignments } from '../account/assignments.js';
import type { OwnerRecord, PodAssignment } from '../account/pod-assignment.js';
import { Registry } from '../base/collections/registry.js';
import { turnIfDue } from '../base/steps.js';
import { isCgroupAlive } from '../processes/cgroup-owner.js';
import type { Listener } from './files/folder-watch.js';
import type { Checkpoint } from './format/checkpoint.js';
import { newOwner } from './owners/owner-record.js';
import type { OwnerRegistry } from './owners/owners.js';
import type { Decide, Store, TransactOptions } from './store.js';
import { MemoryQueue } from './wait-queue.js';

// The only process is this one, and it lives.
const isAlive = ({ cgroup }: OwnerRecord) => cgroup === null || isCgroupAlive(cgroup);

const OWNERS: OwnerRegistry = {
  recordFor: (owner) => newOwner(owner, ''),
  isOwn: ({ kind }) => kind === 'process',
  ownFd: () => undefined,
  handOver: () => false,
  orphans: (): PodAssignment[] => [],
  isAlive,
  isProcessAlive: () => true,
  isOwnProcess: () => true,
  deadPods: (pods) => pods.filter(({ owner }) => !isAlive(owner)),
};

export class MemoryStore implements Store {
  readonly scope = 'memory';
  readonly path = 'memory';
  readonly owners = OWNERS;
  readonly recoveries = [];
  readonly registry: Registry<Store> = new Registry<Store>(this);
  readonly waiters = new MemoryQueue();
  readonly #listeners = new Set<Listener>();
  #checkpoint: Checkpoint | undefined;
  // The last of the running and waiting transactions, which run one after the other.
  #last: Promise<unknown> = Promise.resolve();

  part(): undefined {}

  use(): () => void {
    return () => {};
  }

  read(): Checkpoint | undefined {
    return this.#checkpoint;
  }

  async transact<T>({ signal }: TransactOptions, decide: Decide<T>): Promise<T> {
    const run = async () => {
      const turn = turnIfDue();
      if (turn) await turn;
      signal?.throwIfAborted();
      return decide(this.#checkpoint, async (next) => this.#commit(next));
    };
    const result = this.#last.then(run);
    this.#last = result.catch(() => {});
    return result;
  }

  #commit(assignments: Assignments): void {
    const generation = (this.#checkpoint?.generation ?? 0) + 1;
    this.#checkpoint = { generation, bootId: '', writtenAt: new Date().toISOString(), assignments };
    for (const listener of this.#listeners) setImmediate(listener);
  }

  watch(listener: Listener): () => void {
    const notify = () => listener();
    this.#listeners.add(notify);
    return () => void this.#listeners.delete(notify);
  }

  // The only owner lives as long as the store.
  watchOwners(): () => void {
    return () => {};
  }

  isOfThisBoot(): boolean {
    return true;
  }

  async archive(): Promise<string> {
    return '';
  }
}
