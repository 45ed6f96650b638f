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
import { type ChildGrant, childVariables } from '../children/child-variables.js';
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
import { grantedThreads } from './granted.js';

/** Starts programs on a grant, and moves processes there: see {@link Grant}. */
export class GrantProcesses {
  readonly #record: GrantRecord;
  readonly #grant: ChildGrant;

  /** `grant`: what children get to know. */
  constructor(record: GrantRecord, grant: ChildGrant) {
    this.#record = record;
    this.#grant = grant;
  }

  /**
   * Starts a program on the grant's CPUs without those of parts, with the parameters of
   * node:child_process.spawn. It runs there from its first instruction; with cgroup v2, and this
   * process outside of the grant's cgroup, it moves right after its start. The grant's memory nodes
   * are preferred where the system allows. The child inherits the owner's lock: if this process
   * dies, its grants last until the child and what it started have ended. Its environment has
   * variables such as NUMALIGN_CPUS, see docs/reference/configuration.md#environment-variables.
   * @throws ERR_SYSCALL if the CPUs cannot be used here; ERR_INVALID_OPTION, ERR_SIMULATED_MACHINE,
   *   ERR_GRANT_RELEASED
   */
  spawn(command: string, args?: Arguments<GrantSpawnOptions>, options?: GrantSpawnOptions): ChildProcess {
    return this.startChild((inheritance) => spawnWith(inheritance, command, args, options));
  }

  /**
   * Starts a JavaScript module in a Node process with a message channel, as {@link spawn} starts a
   * program, with the parameters of node:child_process.fork.
   * @throws as {@link spawn}; what node:child_process.fork throws
   */
  fork(
    modulePath: string | URL,
    args?: Arguments<GrantForkOptions>,
    options?: GrantForkOptions,
  ): ChildProcess {
    return this.startChild((inheritance) => forkWith(inheritance, modulePath, args, options));
  }

  /**
   * Calls `start`, which starts a child process synchronously by any means, so that the child runs
   * on the grant from its first instruction until it ends. `start` gets what to pass on: the
   * `variables` of the environment, `ownerFd` (the descriptor of the owner's lock, if there is one)
   * and `parallelism`.
   * @throws as {@link spawn}; what `start` throws
   */
  startChild(start: (inheritance: Inheritance) => ChildProcess): ChildProcess {
    const target = grantedThreads(this.#record);
    const { host, uid } = this.#record;
    const inheritance = this.#inheritance();
    const child = tracedApply(this.#record, 'spawn', () => startOn(target, () => start(inheritance)));
    if (child.pid !== undefined) watchChild(host.ledger, uid, child);
    return child;
  }

  /**
   * Replaces this process by a program (execve(2)) with the same pid, on the grant's CPUs and in
   * its cgroup from its first instruction, with its memory nodes preferred where the system allows.
   * The program owns the grant: it ends with the program and what that started. The program is
   * found as by {@link spawn}, and has the same variables. It has no ignored signals and no open
   * files but the standard streams, the owner's lock and the sockets of systemd. Nothing of this
   * process remains: flush all output first; `exit` is not emitted.
   * @throws ERR_SYSCALL if the kernel refuses the program (ENOENT: not found) or the CPUs, and this
   *   process goes on as before; ERR_INVALID_OPTION, ERR_CGROUP, ERR_SIMULATED_MACHINE,
   *   ERR_GRANT_RELEASED
   */
  exec(command: string, args: readonly string[] = [], options: ExecOptions = {}): never {
    const target = grantedThreads(this.#record);
    const inheritance = this.#inheritance();
    const execute = () => executeWith(inheritance, command, args, options);
    return tracedApply(this.#record, 'exec', () => executeOn(target, execute));
  }

  /**
   * Moves another process with all its threads onto the grant's CPUs without those of parts: into
   * the grant's cgroup, if there is one, with the processes that it has started; else by thread
   * masks, which can miss a thread that is just being created. In the cgroup its memory comes from
   * the booked nodes ({@link memoryEnforcement}). When the grant ends, the process goes to the
   * shared pool.
   * @throws ERR_CGROUP or ERR_SYSCALL if it cannot be moved; ERR_UNKNOWN_MEMBER if there is no such
   *   process; ERR_INVALID_OPTION, ERR_SIMULATED_MACHINE, ERR_GRANT_RELEASED, ERR_LOCK_TIMEOUT,
   *   ERR_STATE_*
   */
  async attach(pid: number, options: AttachOptions = {}): Promise<Attachment> {
    openGrant(this.#record.uid, () => this.#record.checkUsable());
    return tracedApply(this.#record, 'attach', () =>
      attachProcess(this.#record.host, { grant: this.#record.pod }, pid, options),
    );
  }

  #inheritance(): Inheritance {
    return {
      variables: childVariables(this.#grant, this.#record.host.ledger.path),
      ownerFd: this.#record.lockFd(),
      parallelism: this.#grant.sharedCpus.size,
    };
  }
}
