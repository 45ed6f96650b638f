// Grant: CPUs that are this holder's alone, until released.
import type { PodAssignment } from './account/pod-assignment.js';
import type { Admission } from './admission/admit.js';
import { checkRealMachine, ending, GrantRecord, vacateGrant } from './admission/grants/grant-record.js';
import { handOver } from './admission/grants/release.js';
import { resize } from './admission/grants/resize.js';
import { tracedApply, tracedRelease } from './admission/grants/traced.js';
import { handedOver, offer, withdraw } from './admission/grants/transfer.js';
import type { Site } from './admission/site.js';
import type { GrantAudit } from './audit/account.js';
import type { AuditOptions } from './audit/audit-options.js';
import { auditGrant } from './audit/grant-audits.js';
import { invalidOption } from './base/check-options.js';
import { NumalignError } from './base/errors.js';
import { endGrant, onGrantEnd } from './grants/grant-end.js';
import { GrantPools } from './grants/grant-pools.js';
import { releaseGrant } from './grants/release-grant.js';
import type { Placement } from './input/placement.js';
import { parseResize, type ResizeOptions } from './input/resize.js';
import type { PinResult } from './machine/affinity.js';
import { emitterOf, type GrantEmitter, type GrantEvents, type GrantListener } from './moves/move-event.js';
import { checkNoChild, hasChild } from './threads/children.js';
import { threadsOf } from './threads/followers.js';
import { followMemory } from './threads/memory.js';
import { NOTHING_MOVED } from './threads/vacate.js';

/** A grant on its way to another process, as {@link Grant.transfer} gives it. */
export interface Transfer {
  /** For {@link Manager.takeOver}. Whoever has it can take the grant. */
  readonly token: string;
  /**
   * True once the successor has the grant and the threads of this process have left; false where
   * that cannot happen any more.
   */
  readonly accepted: Promise<boolean>;
  /** Takes the token back; false where it is too late. */
  cancel(): Promise<boolean>;
}

/** Has `action` called when this process has the grant no more, for the package's own modules. */
export let onceEnded: (grant: Grant, action: () => void) => void;

/**
 * Exclusive CPUs, as {@link Manager.acquire} gives them: {@link GrantView} says what it is,
 * {@link GrantProcesses}, {@link GrantThreads} and {@link GrantPools} what runs on it, and this class
 * what becomes of it.
 */
export class Grant extends GrantPools {
  readonly #placement: Placement;
  readonly #record: GrantRecord;

  /** Use {@link Manager.acquire}. */
  constructor(
    site: Site,
    placement: Placement,
    pod: PodAssignment,
    { warnings = [], explanation = null }: Partial<Pick<Admission, 'warnings' | 'explanation'>> = {},
  ) {
    const record = new GrantRecord(site, pod);
    super(record, warnings, explanation);
    this.#placement = placement;
    this.#record = record;
  }

  static {
    onceEnded = (grant, action) => onGrantEnd(grant.#record.site, grant.uid, action);
  }

  /**
   * More CPUs and memory, or fewer: growth keeps what it has, and of what it loses the threads that
   * are pinned for it leave first. What it will have is announced on record before (see
   * {@link upcoming}), for `noticeMs`. Threads of this process that are pinned for it follow, and
   * so does the calling thread's memory policy, if it was set for it; the result tells of the
   * threads. Other processes that run on it hear of it (`change`) and must move themselves. A
   * refused resize changes nothing. Where it grows, the policy that it was placed under has its say
   * again.
   * @throws ERR_INVALID_OPTION, ERR_INVALID_QUANTITY, ERR_INVALID_ARGUMENT for a pod of several
   *   containers; a rejection as {@link Manager.admit}'s; ERR_GRANT_BUSY while another resize is
   *   announced; ERR_CHILD_ALIVE where it shrinks while a child started by {@link spawn} runs;
   *   ERR_SYSCALL where a thread cannot leave; ERR_GRANT_RELEASED, ERR_OWNER_ALIVE,
   *   ERR_LOCK_TIMEOUT, ERR_STATE_*
   */
  async resize(options: ResizeOptions): Promise<PinResult> {
    const request = parseResize(options);
    if (request.memory !== undefined && this.#placement.memoryPolicy === 'None') {
      invalidOption(
        'memory',
        options.memory,
        'left out with the memory policy None, which books it for nobody',
      );
    }
    this.#record.checkHeld();
    const { site, pod: before } = this.#record;
    if (request.cpu !== undefined && before.elastic)
      invalidOption('cpu', options.cpu, 'left out for a grant that grows and shrinks by itself');
    return tracedApply(site, this, 'resize', async () => {
      const { pod, followed } = await resize(
        site,
        before,
        request,
        this.#placement,
        threadsOf(site.ledger, this.uid, before),
      );
      this.#record.pod = pod;
      followMemory(this.uid, this.memoryNodes);
      if (this.#record.group?.hasMemoryNodes) this.#record.group.setMemoryNodes(this.memoryNodes);
      return followed ?? NOTHING_MOVED;
    });
  }

  /**
   * Has `listener` called before this grant moves to make room for another request (`move`), and
   * after (`moveEnd`), or after it has grown or shrunk by itself (`resize`): see {@link GrantEvents}.
   * That is told in the process that owns it, and
   * whichever object of the grant is listened to. Does not keep the process alive.
   * @throws ERR_GRANT_RELEASED
   */
  on<Event extends keyof GrantEvents>(event: Event, listener: GrantListener<Event>): this {
    this.#record.check();
    this.#emitter.on<keyof GrantEvents>(event, listener as () => void);
    return this;
  }

  /** As {@link on}, for the next event only. @throws ERR_GRANT_RELEASED */
  once<Event extends keyof GrantEvents>(event: Event, listener: GrantListener<Event>): this {
    this.#record.check();
    this.#emitter.once<keyof GrantEvents>(event, listener as () => void);
    return this;
  }

  /** Ends what {@link on} has begun. */
  off<Event extends keyof GrantEvents>(event: Event, listener: GrantListener<Event>): this {
    this.#emitter.off<keyof GrantEvents>(event, listener as () => void);
    return this;
  }

  get #emitter(): GrantEmitter {
    return emitterOf(this.#record.site.ledger, this.uid);
  }

  /**
   * Hands the grant to a successor process without a gap: it calls {@link Manager.takeOver} with
   * the token. The grant stays on record all the time; once the successor has it, the threads of
   * this process leave, and only then does the successor's call return.
   * @throws ERR_INVALID_ARGUMENT where no process is the owner, ERR_CHILD_ALIVE,
   *   ERR_GRANT_RELEASED, ERR_OWNER_ALIVE, ERR_LOCK_TIMEOUT, ERR_STATE_*
   */
  async transfer(): Promise<Transfer> {
    this.#record.checkHeld();
    const { site, pod } = this.#record;
    checkNoChild(site.ledger, pod, 'handed over');
    const token = await offer(site, pod);
    const accepted = handedOver(site, pod, token, {
      ...vacateGrant(site, pod),
      canLeave: () => !hasChild(site.ledger, pod.uid),
    }).then((isGone) => {
      if (isGone) {
        this.#record.released = Promise.resolve(NOTHING_MOVED);
        endGrant(site, pod);
      }
      return isGone;
    });
    // Nobody may be listening yet.
    accepted.catch(() => {});
    return Object.freeze({ token, accepted, cancel: () => withdraw(site, pod, token) });
  }

  /**
   * Gives up this process's share of a grant that children were started for: true where one of them
   * (or what it started) still lives, and the grant ends with the last; false where none was left,
   * and the grant is released.
   * @throws ERR_OWNER_SHARED where this process holds other grants too, or keeps on record what the
   *   kubelet has given out; and what {@link release} throws
   */
  async handOver(): Promise<boolean> {
    this.#record.checkUsable();
    const { site, pod } = this.#record;
    try {
      const give = () => ending(site, pod, () => handOver(site, pod, vacateGrant(site, pod)));
      const isAlive = await tracedRelease(site, pod, give);
      this.#record.released = Promise.resolve(NOTHING_MOVED);
      endGrant(site, pod);
      return isAlive;
    } catch (error) {
      if (isOffTheRecord(error)) this.#record.released = Promise.resolve(NOTHING_MOVED);
      throw error;
    }
  }

  /**
   * Gives the CPUs back and undoes the pins of this grant as {@link unpin} does; tells which
   * threads moved. Releasing twice is harmless.
   * @throws ERR_CHILD_ALIVE while a child started by {@link spawn} runs on the CPUs: end it, or
   *   {@link handOver}; and what the state folder's errors are: the grant then stays.
   */
  release(): Promise<PinResult> {
    this.#record.released ??= this.#release().catch((error) => {
      this.#record.released = isOffTheRecord(error) ? Promise.resolve(NOTHING_MOVED) : undefined;
      throw error;
    });
    return this.#record.released;
  }

  async #release(): Promise<PinResult> {
    try {
      return await releaseGrant(this.#record.site, this.#record.look());
    } catch (error) {
      // Somebody has released it by its id; our threads have left all the same.
      if (error instanceof NumalignError && error.code === 'ERR_UNKNOWN_GRANT') return NOTHING_MOVED;
      throw error;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.release();
  }

  /**
   * What has happened on the grant's CPUs since its first {@link pin} in this process, or since the
   * first audit where it was not pinned here: by thread and by CPU, with the tasks of others that
   * were seen there. Synchronous; the price of each part is in docs/audit.md.
   * @throws ERR_INVALID_OPTION, ERR_GRANT_RELEASED, ERR_SIMULATED_MACHINE
   */
  audit(options: AuditOptions = {}): GrantAudit {
    const pod = this.#record.check();
    checkRealMachine(this.#record.site);
    return auditGrant(this.#record.site, pod, options);
  }
}

// The CPUs are given back; a custom hint provider has failed to do the same.
function isOffTheRecord(error: unknown): boolean {
  return error instanceof NumalignError && error.code === 'ERR_HINT_PROVIDER';
}
