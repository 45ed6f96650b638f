// ContainerAttachment: gives a running container its own CPUs, if no NRI plugin has seen it start.
import { CpuSet, type GrantInfo, type Manager, NodeSet, type Pod } from 'numalign';
import { isNumalignError } from 'numalign/tools';
import { NodeError } from '../base/errors.js';
import type { Log } from '../base/log.js';
import { reported } from '../base/reported.js';
import type { Cpuset } from '../cgroups/cpuset.js';
import { type AttachmentRequestOptions, attachmentRequest } from './attachment-request.js';
import { describeContainer } from './container-names.js';
import type { ContainerRuntime, CpusetChoice, RunningContainer } from './container-runtime.js';
import { type ContainerMove, isGrantOf, Neighbours, union } from './neighbours.js';

export interface ContainerAttachmentOptions extends AttachmentRequestOptions {
  readonly manager: Manager;
  readonly runtime: ContainerRuntime;
  readonly log: Log;
  /** A name as in {@link ContainerRuntime.find}. */
  readonly container: string;
  /** The uid of an existing grant: then nothing is admitted, and the grant stays at the end. */
  readonly grant?: string | undefined;
  /** True: the other containers stay where they are. Default: false. */
  readonly only?: boolean | undefined;
  /**
   * The folder that records what shared containers had before. Default: the state folder's path
   * with `-node` appended.
   */
  readonly folder?: string | undefined;
  /** Ends {@link ContainerAttachment.start}: everything is then as before. */
  readonly signal?: AbortSignal | undefined;
}

/** The result of {@link ContainerAttachment.start}. */
export interface AttachedContainer {
  readonly container: RunningContainer;
  /** The grant's uid. */
  readonly grant: string;
  readonly cpus: CpuSet;
  /**
   * The nodes of the booked memory; null if none is booked, and the container's nodes stay as they
   * are.
   */
  readonly mems: NodeSet | null;
  /** The cpuset, read back from the kernel. */
  readonly cpuset: Cpuset;
  /** The other containers that have left the CPUs. */
  readonly moves: readonly ContainerMove[];
}

interface Held {
  readonly uid: string;
  readonly cpus: CpuSet;
  readonly mems: NodeSet | null;
}

export class ContainerAttachment {
  readonly #options: ContainerAttachmentOptions;
  readonly #neighbours: Neighbours | undefined;
  #attached: AttachedContainer | undefined;

  constructor(given: ContainerAttachmentOptions) {
    const options = { ...given, log: reported(given.log) };
    this.#options = options;
    const { manager, folder = `${manager.stateDir}-node/narrowed` } = options;
    this.#neighbours = options.only ? undefined : new Neighbours({ ...options, folder });
  }

  /** @throws TypeError before {@link start} */
  get attached(): AttachedContainer {
    if (!this.#attached) throw new TypeError('the container is not attached');
    return this.#attached;
  }

  /**
   * Acquires CPUs for the container, makes the other containers leave them, and sets the
   * container's cpuset through the runtime. All of this is done when it resolves. If a step fails,
   * everything is as before.
   * @throws like {@link ContainerRuntime.find}, {@link ContainerRuntime.setCpuset},
   *   {@link attachmentRequest}, `manager.admit`; ERR_NO_EXCLUSIVE_CPUS under the CPU policy none;
   *   ERR_CONTAINER_ATTACHED if the container has a grant; ERR_CONTAINER_UNMOVABLE if another
   *   container has no other CPUs than those to be cleared; ERR_UNKNOWN_GRANT for a grant that does
   *   not exist; ERR_OWNER_ALIVE for a grant of a process; the signal's reason
   */
  async start(): Promise<void> {
    const { runtime, signal } = this.#options;
    const container = await runtime.find(this.#options.container);
    const grant = await this.#hold(container);
    try {
      signal?.throwIfAborted();
      const moves = (await this.#neighbours?.fit(container.id, grant.cpus)) ?? [];
      signal?.throwIfAborted();
      const cpuset = await runtime.setCpuset(container, cpusetOf(grant));
      signal?.throwIfAborted();
      this.#attached = { container, grant: grant.uid, cpus: grant.cpus, mems: grant.mems, cpuset, moves };
    } catch (error) {
      await this.#undo(container, grant);
      throw error;
    }
  }

  /**
   * Makes the kernel agree with the record. Returns false once the container has ended, or its
   * grant was released: then it has its earlier cpuset again, and the other containers have
   * returned.
   */
  async reconcile(): Promise<boolean> {
    const { container, grant } = this.attached;
    const holder = this.#grantNow(grant);
    const isRunning = holder !== undefined && (await this.#repair(container, holder));
    if (holder === undefined) await this.#restore(container);
    if (!isRunning && this.#options.grant === undefined) await this.#release(grant);
    await this.#neighbours?.fit(isRunning ? container.id : '');
    return isRunning;
  }

  /** Restores the container's earlier cpuset, releases its grant, and moves the others back. */
  async release(): Promise<void> {
    const { container, grant } = this.attached;
    await this.#restore(container);
    if (this.#options.grant === undefined) await this.#release(grant);
    await this.#neighbours?.fit('');
  }

  // A client may already have released it.
  async #release(uid: string): Promise<void> {
    try {
      await this.#options.manager.release(uid);
    } catch (error) {
      if (!isNumalignError(error, 'ERR_UNKNOWN_GRANT')) throw error;
    }
  }

  async #hold(container: RunningContainer): Promise<Held> {
    const { manager, grant: grantName, signal } = this.#options;
    if (grantName !== undefined) return this.#existing(grantName);
    const existing = manager.grants().find((each) => each.alive && isGrantOf(each, container));
    if (existing) throw attached(container, existing);
    const [pod, options] = attachmentRequest(container, this.#options);
    if (manager.placement.cpuManagerPolicy === 'none')
      throw new NodeError('ERR_NO_EXCLUSIVE_CPUS', 'the CPU policy none grants no exclusive CPUs', {
        value: 'none',
        valid: 'static',
      });
    const admitted = await manager.admit(pod, { ...options, ...(signal && { signal }) });
    // Another attachment of the same container was faster.
    if (admitted.alreadyAdmitted) throw attached(container, manager.grantInfo(admitted.uid));
    return heldOf(admitted);
  }

  #existing(uid: string): Held {
    const info = this.#infoOf(uid);
    const flaw = !info
      ? { code: 'ERR_UNKNOWN_GRANT', message: `there is no grant ${uid}`, valid: this.#uids() }
      : info.owner.kind === 'process'
        ? {
            code: 'ERR_OWNER_ALIVE',
            message: `grant ${uid} belongs to process ${info.owner.pid}, so a container cannot join it`,
            valid: 'a grant that no process owns',
          }
        : undefined;
    if (flaw) throw new NodeError(flaw.code, flaw.message, { value: uid, valid: flaw.valid });
    return heldOf(this.#options.manager.pod(uid));
  }

  #grantNow(uid: string): Held | undefined {
    return this.#infoOf(uid) && heldOf(this.#options.manager.pod(uid));
  }

  #infoOf(uid: string): GrantInfo | undefined {
    return this.#options.manager.grants().find((each) => each.uid === uid && each.alive);
  }

  #uids(): string[] {
    return this.#options.manager.grants().map(({ uid }) => uid);
  }

  // Returns whether the container still runs.
  async #repair(container: RunningContainer, grant: Held): Promise<boolean> {
    const { runtime, log } = this.#options;
    try {
      const { cpuset } = await runtime.inspect(container);
      const isRight =
        cpuset.effectiveCpus.equals(grant.cpus) &&
        (grant.mems === null || cpuset.effectiveMems.equals(grant.mems));
      if (isRight) return true;
      await runtime.setCpuset(container, cpusetOf(grant));
      const message = `${describeContainer(container)} had CPUs ${cpuset.effectiveCpus}: it has CPUs ${grant.cpus} again`;
      log('warn', message, { container: container.id, cpus: `${grant.cpus}` });
      return true;
    } catch (error) {
      if (await runtime.isRunning(container)) throw error;
      return false;
    }
  }

  // Restores what it had before. If nothing was set (cgroup v2), that is what it could use.
  async #restore(container: RunningContainer): Promise<void> {
    const { runtime } = this.#options;
    const { effectiveCpus: cpus, effectiveMems: mems } = container.cpuset;
    try {
      const { cpuset } = await runtime.inspect(container);
      const isSame = cpuset.effectiveCpus.equals(cpus) && cpuset.effectiveMems.equals(mems);
      if (!isSame) await runtime.setCpuset(container, { cpus, mems });
    } catch (error) {
      if (await runtime.isRunning(container)) throw error;
    }
  }

  // Takes each step, even if others fail: the caller gets the error that led here.
  async #undo(container: RunningContainer, { uid }: Held): Promise<void> {
    const { log, grant } = this.#options;
    const steps: [string, () => Promise<unknown>][] = [
      ['the container is not as before', () => this.#restore(container)],
      ['the grant is not released', async () => grant === undefined && (await this.#release(uid))],
      ['other containers are not as before', async () => this.#neighbours?.fit('')],
    ];
    for (const [what, step] of steps) {
      await step().catch((error: Error) => log('error', `${what}: ${error.message}`, { grant: uid }));
    }
  }
}

function attached(container: RunningContainer, { uid, cpus }: GrantInfo): NodeError {
  const message = `${describeContainer(container)} already has grant ${uid} with CPUs ${cpus}`;
  return new NodeError('ERR_CONTAINER_ATTACHED', message, { value: uid, valid: 'that grant' });
}

const cpusetOf = ({ cpus, mems }: Held): CpusetChoice => ({ cpus, ...(mems && { mems }) });

// Held siblings are left out, since they must stay idle.
function heldOf({ uid, booking, containers }: Pod): Held {
  const cpus = booking?.cpus ?? union(containers.map((each) => each.cpus ?? CpuSet.EMPTY));
  const nodes = (booking?.memory ?? containers.flatMap(({ memory }) => memory)).flatMap(
    (block) => block.nodes,
  );
  return { uid, cpus, mems: nodes.length > 0 ? NodeSet.from(nodes) : null };
}
