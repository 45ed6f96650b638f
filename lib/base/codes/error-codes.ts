// ErrorCodes: what can go wrong. Types only: nothing is loaded at runtime.
import type { PlacementCodes } from './placement-codes.js';
import type { RejectionCodes } from './rejection-codes.js';

interface KubeletFacts {
  value: string;
  valid: readonly string[];
  found: readonly string[];
  strictlyReserved: string;
  ownExclusive: string;
}

interface OwnerFacts {
  value: string | number | null;
  pid?: number | null;
  command?: string | null;
  survivors?: readonly { readonly pid: number; readonly command: string }[];
}

interface WorkerFacts {
  value: number;
  pid?: number | undefined;
  exitCode?: number | null;
  signal?: string | null;
  startDeadlineMs?: number;
}

/**
 * The codes of a {@link NumalignError}, each with what it means and what to do, and the facts that
 * its `details` have besides {@link ErrorDetails}.
 */
export interface ErrorCodes extends RejectionCodes, PlacementCodes {
  /**
   * The native addon cannot be loaded: it is not built for this machine, this system is not Linux,
   * Node forbids addons (`--permission` without `--allow-addons`), or a bundler left it out. The
   * message says which. Imports do not throw it, calls do; `supported.reason` is this error.
   * @remedy Use `optional: true` if the program can do without, see docs/platforms.md. Declare
   *   numalign external to the bundler. Or run `npm rebuild numalign`, with
   *   `libhwloc-dev pkg-config g++ make python3` installed. Allow a package manager that runs no
   *   install scripts to run numalign's (npm 11.19 and newer:
   *   `npm install-scripts approve numalign`).
   */
  ERR_ADDON_MISSING: object;
  /**
   * A pod to adopt contradicts itself, the machine, its settings, another grant, or what is on
   * record for this pod. `details.value` lists every contradiction. Nothing is recorded.
   * @remedy Release what is in the way, or leave it out.
   */
  ERR_ADOPTION: { value: readonly string[]; valid: string };
  /**
   * A child started by `grant.spawn` (`details.pid`) still runs on the CPUs that you release, take
   * away or hand over.
   * @remedy End the child, or call `grant.handOver()`.
   */
  ERR_CHILD_ALIVE: { value: string; pid: number | undefined };
  /**
   * A systemd program that `numalign setup` calls (`details.value`) failed; the message has its
   * output. `setup` may have made files.
   * @remedy Correct what the message names, and run `numalign setup` again.
   */
  ERR_COMMAND_FAILED: { value: string | readonly string[]; valid: string; exitCode?: number | null };
  /**
   * The machine's recorded settings differ from the given ones (`details.differences`), the given
   * ones would leave nothing to share, or they change `cgroupRoot` while CPUs are exclusive. The
   * recorded value is always accepted, even if it names CPUs or memory that the machine lost since.
   * @remedy Leave the option out, or change it for all with `manager.configure()` or `numalign
   *   configure`.
   */
  ERR_CONFIG_CONFLICT: { differences?: readonly { option: string; asked: string; recorded: string }[] };
  /**
   * Another resize of the grant is announced or running.
   * @remedy Wait until it is done.
   */
  ERR_GRANT_BUSY: { value: string };
  /**
   * The grant was released, through this object or by its uid.
   * @remedy Acquire another grant.
   */
  ERR_GRANT_RELEASED: { value: string };
  /**
   * A value makes no sense: an id out of range, an empty set of CPUs to run on, more than one
   * source for a machine.
   * @remedy See `details.valid`.
   */
  ERR_INVALID_ARGUMENT: { line?: number; column?: number };
  /**
   * A text is not a list of ids such as `0-3,8`. The message quotes the wrong part.
   * @remedy Write ascending ids and ranges, separated by commas, without spaces.
   */
  ERR_INVALID_LIST: object;
  /**
   * An option is unknown (`details.nearest` is the closest valid name, if there is one), or its
   * value is not valid.
   * @remedy See `details.valid`.
   */
  ERR_INVALID_OPTION: { option?: string; nearest?: string };
  /**
   * A pod contradicts itself or the rules of Kubernetes, or has resources as a whole under the
   * kubelet v1.32. `details.field` says where, such as `spec.containers[0].name`.
   * @remedy See `details.valid`.
   */
  ERR_INVALID_POD: { field: string; valid: string };
  /**
   * An amount (`details.field`) is not a Kubernetes quantity, or is too large.
   * @remedy Use amounts such as `2`, `"500m"` or `"1.5Gi"`, up to 2^53-1.
   */
  ERR_INVALID_QUANTITY: { field: string; valid: string; nearest?: string };
  /**
   * A machine description cannot be read, or contradicts itself.
   * @remedy Correct the file, field or CPU that the message names.
   */
  ERR_INVALID_TOPOLOGY: object;
  /**
   * A kubelet manages this machine (`details.found`), it may give away the CPUs that numalign would
   * manage, and no living process records what it gives out. The manager is not opened.
   * @remedy Run `numalign-node`, which records it; or set `managedCPUs` within
   *   `details.strictlyReserved` or `details.ownExclusive`, see docs/kubelet.md; or insist with
   *   `besideKubelet`.
   */
  ERR_KUBELET_CONFLICT: KubeletFacts;
  /**
   * The kubelet's files contradict the machine, each other, or the grants on record.
   * `details.value` lists every contradiction. Nothing is imported.
   * @remedy Release what is in the way, or change the machine's settings.
   */
  ERR_KUBELET_IMPORT: { value: readonly string[]; valid: string };
  /**
   * A state file of the kubelet (`details.file`) is damaged, belongs to another policy, is not a
   * state file, has no checksum, or has `podEntries` that would be lost.
   * @remedy Use another copy. For a file without a checksum use `allowUnverified`; for one with
   *   `podEntries` the feature gate PodLevelResourceManagers.
   */
  ERR_KUBELET_STATE: { file?: string };
  /**
   * The state stayed locked for longer than `lockTimeoutMs`. `details.holder` and `details.pid`
   * name the process that has the lock. `details.stopped` is true if that process is visibly
   * stopped (SIGSTOP, a debugger).
   * @remedy Continue or end the stopped process (`kill -CONT PID`). numalign never takes its lock
   *   away.
   */
  ERR_LOCK_TIMEOUT: { holder: string; pid: number | null; stopped: boolean; lockTimeoutMs: number };
  /**
   * The manager is closed.
   * @remedy Open another manager.
   */
  ERR_MANAGER_CLOSED: object;
  /**
   * A grant (`details.uid`) does not consent to make room: `movable` is off, it excludes the NUMA
   * nodes in `details.value`, or it has moved as often in this hour as it allows. Nothing is
   * changed.
   * @remedy Ask another grant, or wait.
   */
  ERR_NOT_MOVABLE: { uid: string; valid: string };
  /**
   * A movable grant (`details.value`) did not move. `details.reason` is `no-room`, `refused`
   * (the `code` of the `cause` says why), `no-answer` (its owner did not answer within its notice),
   * `ended` or `called-off`. Nothing more is kept for the request than before.
   * @remedy Ask another grant.
   */
  ERR_NOT_MOVED: { value: string; reason: 'no-room' | 'refused' | 'no-answer' | 'ended' | 'called-off' };
  /**
   * A package or a systemd program that only a part of numalign needs (`details.value`) is not
   * installed, or cannot be loaded. The `cause` says why.
   * @remedy For metrics, install `prom-client` or `@opentelemetry/api` where `@numalign/metrics` is.
   */
  ERR_OPTIONAL_DEPENDENCY: { value: string | undefined };
  /**
   * The grant belongs to another living process: this process cannot release, resize or pin to it.
   * Or its former owner has not left the CPUs yet. Or another living process keeps the record of
   * what the kubelet gives out.
   * @remedy End that process: its CPUs are free then. If it has ended, `details.survivors` (`pid`,
   *   `command`) are its processes that still run: end these.
   */
  ERR_OWNER_ALIVE: OwnerFacts;
  /**
   * `handOver()` in a process that holds other grants too, or that keeps the record of the kubelet:
   * one lock stands for all of these.
   * @remedy Hand over from a process with a single grant.
   */
  ERR_OWNER_SHARED: { value: string; valid: readonly string[] };
  /**
   * A pod with this uid is admitted with other containers, requests or pod resources. Or the pod
   * has no uid, or a uid equal to its name, and another pod of its name and namespace is admitted
   * (`details.valid` is its uid). Or two pods of a list are the same.
   * @remedy Release that pod first, replace it (`replace` of `admitAll`, `--replace`), or give the
   *   new pod another uid.
   */
  ERR_POD_CONFLICT: { value: string; valid?: string };
  /**
   * A decision about a simulated machine cannot be applied to this machine, nor kept in its state.
   * @remedy Give the manager its own `stateDir`, and do not pin.
   */
  ERR_SIMULATED_MACHINE: { value?: string; valid?: string };
  /**
   * The state is damaged and cannot be recovered: the holdings of a living owner are unknown
   * (`details.value` names its file in `owners/`), or two owners claim the same. Or the state's
   * file was removed while in use. Nothing is granted or released, and the shared pool is unknown;
   * reading works.
   * @remedy End that owner, and remove its file if no process has it. After a removed file, open a
   *   new manager.
   */
  ERR_STATE_CORRUPT: object;
  /**
   * The state folder cannot be used: no access, a symbolic link, another user's folder, writable by
   * every user, removed, read-only, or on a file system without open-file-description locks. Or
   * others can write `/run/numalign-root`, where root's choice of a cgroup root belongs.
   * @remedy Follow the message, which says how root corrects it, or use another `stateDir`.
   */
  ERR_STATE_FOLDER: { value: string; valid: string };
  /**
   * A newer numalign wrote the state, or a living owner's file that a recovery needs. Nothing is
   * written; the known part of the state can be read, unless it has a value that this version does
   * not know (`details.value`).
   * @remedy Use the numalign that wrote it, or a newer one: see docs/upgrades.md.
   */
  ERR_STATE_VERSION: { value: number | string; valid?: string | readonly string[] };
  /**
   * The pod has no container of this name.
   * @remedy Use a name out of `details.valid`.
   */
  ERR_UNKNOWN_CONTAINER: { value: string; valid: readonly string[] };
  /**
   * No grant has this uid. `details.valid` has the uids on record.
   * @remedy See `numalign status`.
   */
  ERR_UNKNOWN_GRANT: { value: string; valid: readonly string[] };
  /**
   * No process or cgroup `details.value` exists, is visible in `/proc`, or is a shared member.
   * @remedy `numalign status` lists the shared members.
   */
  ERR_UNKNOWN_MEMBER: { valid: string };
  /**
   * The grant has no part of this name. Parts are requested when the grant is acquired.
   * @remedy Use a name out of `details.valid`, or `acquire({ parts })`.
   */
  ERR_UNKNOWN_PART: { value: string; valid: readonly string[] };
  /**
   * No grant is handed over by this token: it was used or withdrawn, or the owner has ended.
   * @remedy Ask the owner for another token.
   */
  ERR_UNKNOWN_TRANSFER: { value: string };
  /**
   * A new worker of `cluster.restart()` (`details.value` is its id, `details.pid` its process)
   * ended before it served (`details.exitCode`, `details.signal`), or did not serve within
   * `details.startDeadlineMs`. Workers that were not restarted yet go on. Also: a listener forked
   * in the `exit` of a worker that no new worker follows.
   * @remedy Read what the worker printed, or raise `startDeadlineMs`. See docs/cluster.md.
   */
  ERR_WORKER_START: WorkerFacts;
}
