// GrantProcesses: other processes on a grant.
import type { ChildProcess } from 'node:child_process';
import {
  type Attachment,
  type AttachOptions,
  attachProcess,
  openGrant,
} from '../admission/grants/attachment.js';
import type { GrantRecord } from '../admission/grants/grant-record.js';
import { tracedApply } from '../admission/grants/traced.js';
import type { Warning } from '../admission/warnings.js';
import { childVariables } from '../children/child-variables.js';
import { type ExecOptions, executeOn, executeWith } from '../children/execution.js';
import {
  type Arguments,
  forkWith,
  type GrantForkOptions,
  type GrantSpawnOptions,
  type Inheritance,
  spawnWith,
  startOn,
} from '../children/spawn.js';
import { watchChild } from '../threads/children.js';
import { GrantView } from './grant-view.js';
import { grantedThreads } from './granted.js';

/** Starts programs on a grant, and moves processes there: see {@link Grant}. */
export class GrantProcesses extends GrantView {
  readonly #record: GrantRecord;

  constructor(record: GrantRecord, warnings: readonly Warning[], explanation: string | null) {
    super(record, warnings, explanation);
    this.#record = record;
  }

  /**
   * Starts a program on the grant's CPUs, without those of parts, there from its first instruction
   * (with cgroup v2, where this process is not in the grant’s cgroup, moved right after its start),
   * with the grant's memory nodes preferred where that is allowed (whatever policy this thread was
   * pinned with). It also gets a copy of the owner's lock: should this process die, its grants live
   * on until the child (and what it started) has ended. Same parameters as
   * node:child_process.spawn; the child finds {@link ChildVariables} in its environment, and with
   * `threadCounts: 'auto'` the number of threads to start.
   * @throws ERR_SYSCALL where the CPUs cannot be used here, ERR_INVALID_OPTION,
   *   ERR_SIMULATED_MACHINE, ERR_GRANT_RELEASED
   */
  spawn(command: string, args?: Arguments<GrantSpawnOptions>, options?: GrantSpawnOptions): ChildProcess {
    return this.startChild((inheritance) => spawnWith(inheritance, command, args, options));
  }

  /**
   * Starts a module of JavaScript in a Node process with a channel for messages, as {@link spawn}
   * starts a program. Same parameters as node:child_process.fork.
   * @throws as {@link spawn}, and what node:child_process.fork throws
   */
  fork(
    modulePath: string | URL,
    args?: Arguments<GrantForkOptions>,
    options?: GrantForkOptions,
  ): ChildProcess {
    return this.startChild((inheritance) => forkWith(inheritance, modulePath, args, options));
  }

  /**
   * Has `start` start a child process, synchronously, as {@link spawn} does: the child is born on
   * the grant's CPUs, and counts as running on the grant until it exits. `start` passes on what a
   * child inherits.
   * @throws as {@link spawn}, and what `start` throws
   */
  startChild(start: (inheritance: Inheritance) => ChildProcess): ChildProcess {
    const target = grantedThreads(this.#record, this, '');
    const { site, pod } = this.#record;
    const inheritance = this.#inheritance();
    const child = tracedApply(site, this, 'spawn', () => startOn(target, () => start(inheritance)));
    if (child.pid !== undefined) watchChild(site.ledger, pod.uid, child);
    return child;
  }

  /**
   * This process becomes another program (execve(2)), with the same pid: on the grant's CPUs and in
   * its cgroup from its first instruction, with the grant's memory nodes preferred where that is
   * allowed. The program owns from then on whatever this process did: it has the owner's lock open,
   * and all that is granted by it ends with the program and what that has started. `command` is
   * looked for as by {@link spawn}; the program finds {@link ChildVariables} in its environment, no
   * signal ignored, and of the descriptors beside the standard streams its owner's lock and the
   * sockets that systemd has opened for it. Nothing else of this process is left: what is to be
   * written must be written, and `exit` is not emitted.
   * @throws ERR_SYSCALL where the kernel refuses the program (`errnoName`: ENOENT where it is not
   *   there) or the CPUs; then this process is as before. ERR_INVALID_OPTION, ERR_CGROUP,
   *   ERR_SIMULATED_MACHINE, ERR_GRANT_RELEASED
   */
  exec(command: string, args: readonly string[] = [], options: ExecOptions = {}): never {
    const target = grantedThreads(this.#record, this, '');
    const inheritance = this.#inheritance();
    const execute = () => executeWith(inheritance, command, args, options);
    return tracedApply(this.#record.site, this, 'exec', () => executeOn(target, execute));
  }

  /**
   * Moves another process, with all its threads, onto the grant's CPUs, without those of parts:
   * into the grant's cgroup where it has one (cgroup.procs; also what it has started by now), else
   * by the masks of its threads, of which some may be missed while they are being born. When the
   * grant ends, it goes to the shared pool. In the cgroup its memory comes from the nodes of what is
   * booked, see {@link memoryEnforcement}; `migrate`: what it has on others already moves there too.
   * @throws ERR_CGROUP, ERR_SYSCALL where it cannot be moved; ERR_UNKNOWN_MEMBER where there is no
   *   such process; ERR_INVALID_OPTION, ERR_SIMULATED_MACHINE, ERR_GRANT_RELEASED,
   *   ERR_LOCK_TIMEOUT, ERR_STATE_*
   */
  async attach(pid: number, options: AttachOptions = {}): Promise<Attachment> {
    openGrant(this.uid, () => this.#record.checkUsable());
    return tracedApply(this.#record.site, this, 'attach', () =>
      attachProcess(this.#record.site, this.#record.pod, undefined, pid, options),
    );
  }

  #inheritance(): Inheritance {
    return {
      variables: childVariables(this, this.#record.site.ledger.path),
      ownerFd: this.#record.lockFd(),
      parallelism: this.availableParallelism,
    };
  }
}
