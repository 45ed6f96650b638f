// ContainerAttachment: a container that runs already, on CPUs of its own, where no NRI plugin has
// seen it start.
import { CpuSet, type GrantInfo, type Manager, NodeSet, NumalignError, type Pod } from 'numalign';
import { NodeError } from '../base/errors.js';
import type { Log } from '../base/log.js';
import type { Cpuset } from '../cgroups/cpuset.js';
import { type AttachmentRequestOptions, attachmentRequest } from './attachment-request.js';
import { describeContainer } from './container-names.js';
import type { ContainerRuntime, CpusetChoice, RunningContainer } from './container-runtime.js';
import { type ContainerMove, isGrantOf, Neighbours, union } from './neighbours.js';

export interface ContainerAttachmentOptions extends AttachmentRequestOptions {
  readonly manager: Manager;
  readonly runtime: ContainerRuntime;
  readonly log: Log;
  /** As {@link ContainerRuntime.find} takes it. */
  readonly container: string;
  /** The uid of a grant that is there: nothing is admitted then, and it stays at the end. */
  readonly grant?: string | undefined;
  /** True: the other containers stay where they are. Default: false. */
  readonly only?: boolean | undefined;
  /**
   * Where it is kept what shared containers had before. Default: the folder of the state, with
   * `-node` behind.
   */
  readonly folder?: string | undefined;
  /** Gives {@link ContainerAttachment.start} up: all is as it was before then. */
  readonly signal?: AbortSignal | undefined;
}

/** What {@link ContainerAttachment.start} has done. */
export interface AttachedContainer {
  readonly container: RunningContainer;
  /** Its uid. */
  readonly grant: string;
  readonly cpus: CpuSet;
  /** Of the memory that is booked; null where none is, and the container's stay as they are. */
  readonly mems: NodeSet | null;
  /** As the kernel has it. */
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

  constructor(options: ContainerAttachmentOptions) {
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
   * Takes CPUs for the container, has the other containers leave them, and sets the container's
   * cpuset by the runtime. All of that is so when it resolves; where one step fails, all is as it
   * was before.
   * @throws as {@link ContainerRuntime.find}, {@link ContainerRuntime.setCpuset},
   *   {@link attachmentRequest}, `manager.admit`; ERR_NO_EXCLUSIVE_CPUS under the CPU policy none;
   *   ERR_CONTAINER_ATTACHED where the container has a grant; ERR_CONTAINER_UNMOVABLE where another
   *   container has no CPUs beside those to be cleared; ERR_UNKNOWN_GRANT for a grant that is not
   *   there; ERR_OWNER_ALIVE for one that is a process's; the signal's reason
   */
  async start(): Promise<void> {
    const { runtime, signal } = this.#options;
    const container = await runtime.find(this.#options.container);
    const held = await this.#hold(container);
    try {
      signal?.throwIfAborted();
      const moves = (await this.#neighbours?.fit(container.id, held.cpus)) ?? [];
      signal?.throwIfAborted();
      const cpuset = await runtime.setCpuset(container, choiceOf(held));
      signal?.throwIfAborted();
      this.#attached = { container, grant: held.uid, cpus: held.cpus, mems: held.mems, cpuset, moves };
    } catch (error) {
      await this.#undo(container, held);
      throw error;
    }
  }

  /**
   * Compares what the kernel has with what is on record, and puts it right. Answers false once the
   * container has ended, or its grant was given back: it has what it had before then, and the other
   * containers have come back.
   */
  async reconcile(): Promise<boolean> {
    const { container, grant } = this.attached;
    const held = this.#grantNow(grant);
    const isThere = held !== undefined && (await this.#repair(container, held));
    if (held === undefined) await this.#restore(container);
    if (!isThere && this.#options.grant === undefined) await this.#release(grant);
    await this.#neighbours?.fit(isThere ? container.id : '');
    return isThere;
  }

  /** The container gets back what it had, its grant is given back, and the others come back. */
  async release(): Promise<void> {
    const { container, grant } = this.attached;
    await this.#restore(container);
    if (this.#options.grant === undefined) await this.#release(grant);
    await this.#neighbours?.fit('');
  }

  // Somebody may have given it back before.
  async #release(uid: string): Promise<void> {
    try {
      await this.#options.manager.release(uid);
    } catch (error) {
      if (!(error instanceof NumalignError && error.code === 'ERR_UNKNOWN_GRANT')) throw error;
    }
  }

  async #hold(container: RunningContainer): Promise<Held> {
    const { manager, grant: wanted, signal } = this.#options;
    if (wanted !== undefined) return this.#given(wanted);
    const there = manager.grants().find((each) => each.alive && isGrantOf(each, container));
    if (there) throw attached(container, there);
    const [pod, options] = attachmentRequest(container, this.#options);
    if (manager.placement.cpuManagerPolicy === 'none')
      throw new NodeError('ERR_NO_EXCLUSIVE_CPUS', 'the CPU policy none gives exclusive CPUs to nobody', {
        value: 'none',
        valid: 'static',
      });
    const admitted = await manager.admit(pod, { ...options, ...(signal && { signal }) });
    // By another attachment of the same container, since.
    if (admitted.alreadyAdmitted) throw attached(container, manager.grantInfo(admitted.uid));
    return heldOf(admitted);
  }

  #given(uid: string): Held {
    const info = this.#infoOf(uid);
    const flaw = !info
      ? { code: 'ERR_UNKNOWN_GRANT', message: `there is no grant ${uid}`, valid: this.#uids() }
      : info.owner.kind === 'process'
        ? {
            code: 'ERR_OWNER_ALIVE',
            message: `grant ${uid} belongs to process ${info.owner.pid}, and takes no container in`,
            valid: "a grant that is no process's",
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

  // Whether the container still runs.
  async #repair(container: RunningContainer, held: Held): Promise<boolean> {
    const { runtime, log } = this.#options;
    try {
      const { cpuset } = await runtime.inspect(container);
      const isRight =
        cpuset.effectiveCpus.equals(held.cpus) &&
        (held.mems === null || cpuset.effectiveMems.equals(held.mems));
      if (isRight) return true;
      await runtime.setCpuset(container, choiceOf(held));
      const message = `${describeContainer(container)} had CPUs ${cpuset.effectiveCpus}: it has ${held.cpus} again`;
      log('warn', message, { container: container.id, cpus: `${held.cpus}` });
      return true;
    } catch (error) {
      if (await runtime.isRunning(container)) throw error;
      return false;
    }
  }

  // What it had before: where nothing was set (cgroup v2) that is what it could use.
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

  // Each step, whatever becomes of the others: the caller gets the error that led here.
  async #undo(container: RunningContainer, { uid }: Held): Promise<void> {
    const { log, grant } = this.#options;
    const steps: [string, () => Promise<unknown>][] = [
      ['the container is not as it was', () => this.#restore(container)],
      ['the grant is not given back', async () => grant === undefined && (await this.#release(uid))],
      ['other containers are not as they were', async () => this.#neighbours?.fit('')],
    ];
    for (const [what, step] of steps) {
      await step().catch((error: Error) => log('error', `${what}: ${error.message}`, { grant: uid }));
    }
  }
}

function attached(container: RunningContainer, { uid, cpus }: GrantInfo): NodeError {
  const message = `${describeContainer(container)} has grant ${uid} with CPUs ${cpus} already`;
  return new NodeError('ERR_CONTAINER_ATTACHED', message, { value: uid, valid: 'that grant' });
}

const choiceOf = ({ cpus, mems }: Held): CpusetChoice => ({ cpus, ...(mems && { mems }) });

// Without siblings that are held: these stay idle.
function heldOf({ uid, booking, containers }: Pod): Held {
  const cpus = booking?.cpus ?? union(containers.map((each) => each.cpus ?? CpuSet.EMPTY));
  const nodes = (booking?.memory ?? containers.flatMap(({ memory }) => memory)).flatMap(
    (block) => block.nodes,
  );
  return { uid, cpus, mems: nodes.length > 0 ? NodeSet.from(nodes) : null };
}
