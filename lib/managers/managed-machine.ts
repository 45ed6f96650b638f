// ManagedMachine: what a manager does for the machine as a whole: its settings, shared members,
// devices and other resources, and its upkeep.
import type { ChildProcess } from 'node:child_process';
import { cpusNow } from '../account/cpus-now.js';
import { publishError } from '../admission/diagnostics.js';
import { startShared } from '../admission/grants/shared-child.js';
import {
  addSharedMember,
  removeSharedMember,
  type SharedGroup,
  type SharedMemberTarget,
} from '../admission/grants/shared-membership.js';
import type { Host } from '../admission/host.js';
import { recordedState } from '../admission/on-record.js';
import { reclaim } from '../admission/transact.js';
import { checkOptions } from '../base/check-options.js';
import { unlessRefused } from '../base/errors.js';
import { retry } from '../base/notices/backoff.js';
import { callListeners } from '../base/notices/listeners.js';
import { turnIfDue } from '../base/steps.js';
import { followCpus } from '../changes/adjuster.js';
import { checkPreferredAllocation, type PreferredAllocation } from '../decision/devices/device-resources.js';
import type { HintProvider } from '../decision/hints/hint-provider.js';
import { type Settings, settingsNow } from '../decision/machine-settings.js';
import type { ReconcileReport } from '../enforcement/drift.js';
import { type DeviceSelection, parseDevices } from '../input/devices.js';
import type { MachineOptions } from '../input/machine-options.js';
import { checkSignal } from '../input/requests/request.js';
import { type KubeletPodHoldings, parseHoldings } from '../kubelet/record/kubelet-holdings.js';
import { type KubeletStatus, kubeletStatus } from '../kubelet/record/kubelet-status.js';
import { type RecordKubeletOptions, recordKubelet } from '../kubelet/record/record-kubelet.js';
import { openAtExit } from '../reconcile/exit.js';
import { Reconciler, type Reconciling } from '../reconcile/reconciler.js';
import type { ManagerEmitter, ManagerParts } from './manager-parts.js';
import { configure, leavePool } from './prepare.js';

/** The options of {@link Manager.registerDevices}. */
export interface DeviceOptions {
  /**
   * A callback that chooses among the free devices, as a device plugin's GetPreferredAllocation.
   * See docs/devices.md.
   * @default none
   */
  preferredAllocation?: PreferredAllocation;
}

// In 51 seconds.
const RECLAIM_ATTEMPTS = 11;

/** Serves the machine as a whole: see {@link Manager}. */
export class ManagedMachine {
  readonly #parts: ManagerParts;
  readonly #reconciling: Reconciling;
  /** Ends the upkeep. */
  readonly end: () => void;

  /** `emitter` emits what the upkeep finds. */
  constructor(parts: ManagerParts, emitter: ManagerEmitter) {
    const { config, host, watch } = parts;
    const { ledger } = host;
    this.#parts = parts;
    const fail = (error: Error) => callListeners(emitter, 'error', error);
    this.#reconciling = {
      host,
      placement: config.placement,
      periodMs: config.reconcilePeriodMs,
      looked: () => {
        watch.lookSoon();
        lookForRoom(host);
      },
      drifted: (drift) => callListeners(emitter, 'drift', drift),
      hotplugged: (hotplug) => callListeners(emitter, 'hotplug', hotplug),
      failed: fail,
    };
    const endOwnerWatch = ledger.watchOwners(
      () => takeBack(parts),
      (error) => {
        publishError(host, 'watch', error);
        fail(error);
      },
    );
    const endReconciling = host.topology.isSimulated
      ? () => {}
      : Reconciler.of(ledger).attach(this.#reconciling);
    const endOpening = openAtExit(host);
    this.end = () => {
      endOpening();
      endReconciling();
      leavePool(host);
      endOwnerWatch();
    };
  }

  // The manager shares one host with its grants, so that all see its changes.
  get #host(): Host {
    this.#parts.lifetime.check();
    return this.#parts.host;
  }

  /**
   * Changes the machine's settings for all its users. Grants stay as they are.
   * @throws ERR_INVALID_OPTION; ERR_CONFIG_CONFLICT if nothing would be left to share, or if
   *   `cgroupRoot` changes while CPUs are exclusive; ERR_KUBELET_CONFLICT as {@link openManager}
   */
  async configure(options: MachineOptions): Promise<Settings> {
    await configure(this.#host, this.#parts.config, options);
    const { settings, pods } = recordedState(this.#host);
    return settingsNow(settings, cpusNow(this.#host.topology, pods));
  }

  /**
   * Adds devices to the admissions of this manager: a list, or a pattern that selects among
   * {@link Topology.devices}. A second call for the resource replaces the list, for example if a
   * device fails; the callback stays unless you give another. Granted devices stay granted,
   * whatever the list says. See docs/devices.md.
   * @throws ERR_INVALID_OPTION
   */
  registerDevices(resource: string, selection: DeviceSelection, options: DeviceOptions = {}): void {
    const { resources, watch } = this.#parts;
    const { topology } = this.#host;
    const { preferredAllocation } = checkOptions(options, ['preferredAllocation'], 'registerDevices');
    const devices = parseDevices(selection, topology, resource);
    const before = resources.get(resource)?.preferredAllocation;
    const callback = checkPreferredAllocation(preferredAllocation) ?? before;
    resources.set(resource, { name: resource, devices, preferredAllocation: callback });
    watch.lookSoon();
  }

  /**
   * Records what the kubelet gives out: numalign grants none of these CPUs, memory and devices, and
   * shared members leave the CPUs. Call it at every change; null removes the record. This process
   * becomes the keeper of the record, which stays when the keeper ends. A grant that shares
   * something with the record stays, with the flag CPU_TAKEN, MEMORY_TAKEN or DEVICE_TAKEN. See
   * docs/kubelet.md.
   * @throws ERR_INVALID_OPTION, ERR_INVALID_LIST, ERR_INVALID_ARGUMENT; ERR_OWNER_ALIVE if another
   *   living process keeps the record; ERR_LOCK_TIMEOUT, ERR_STATE_*, ERR_SYSCALL; the signal's
   *   reason
   */
  async recordKubelet(
    pods: readonly KubeletPodHoldings[] | null,
    options: RecordKubeletOptions = {},
  ): Promise<KubeletStatus | null> {
    const host = this.#host;
    const held = pods === null ? null : parseHoldings(pods);
    const { signal } = checkOptions(options, ['signal'], 'recordKubelet');
    return kubeletStatus(await recordKubelet(host, held, checkSignal(signal)), () => true);
  }

  /**
   * Adds your own resource to the admissions of this manager, after numalign's resources and in the
   * order of the calls. See docs/admission.md.
   * @throws ERR_INVALID_OPTION for an object that is not a provider, or for a name that is taken
   */
  addHintProvider(provider: HintProvider): void {
    this.#host.providers.add(provider);
  }

  /**
   * Makes a process with all its threads, or every process in and below a cgroup, a shared member:
   * it leaves CPUs before they become exclusive, which numalign verifies, and returns when they are
   * released. A process moves into the shared cgroup below `cgroupRoot` if possible; otherwise
   * numalign sets the masks of its threads, each of which keeps its own choice. A cgroup must be
   * below `cgroupRoot`. A process stays a member until it ends. See docs/enforcement.md.
   * @throws ERR_UNKNOWN_MEMBER if there is no such process or cgroup; ERR_MEMBER_UNMOVABLE if it
   *   cannot leave exclusive CPUs, is attached to some, or this user may not move it;
   *   ERR_INVALID_OPTION, ERR_SIMULATED_MACHINE, ERR_LOCK_TIMEOUT, ERR_STATE_*
   */
  async addSharedMember(target: SharedMemberTarget): Promise<void> {
    await addSharedMember(this.#host, target);
  }

  /**
   * Calls `start`, which starts a child process synchronously, so that the child is a shared member
   * from its first instruction. The promise resolves with what `start` returns.
   * @throws ERR_MEMBER_UNMOVABLE if this user may not move the child, which is ended then; as
   *   {@link addSharedMember}; what `start` throws
   */
  async startChild(start: () => ChildProcess): Promise<ChildProcess> {
    return startShared(this.#host, start);
  }

  /**
   * Ends a shared membership. While no CPU is exclusive, a process goes back to the cgroup that it
   * came from, if numalign knows it; otherwise it stays. The promise resolves with the shared
   * cgroup that the process is still in, or null.
   * @throws ERR_UNKNOWN_MEMBER; as {@link addSharedMember}
   */
  async removeSharedMember(target: SharedMemberTarget): Promise<SharedGroup | null> {
    return removeSharedMember(this.#host, target);
  }

  /**
   * Compares the machine with the record and repairs differences: threads of this process outside
   * their grant or its cgroup (a narrower mask is left alone); missing, changed or left-over
   * cgroups below `cgroupRoot`; the partition; shared members on exclusive CPUs; CPUs of its grants
   * that went offline or came back. A manager does so after every change and every
   * `cpuManagerReconcilePeriod`, without keeping the process alive. Without a difference it writes
   * nothing and takes no lock. What differs again after two repairs is `contested`: reported once,
   * then left alone until it is right or the grants change. The events `drift` and `hotplug` report
   * what it finds. It does nothing on a simulated machine. See docs/reconcile.md.
   * @throws ERR_LOCK_TIMEOUT, ERR_STATE_*, ERR_CGROUP, ERR_MANAGER_CLOSED
   */
  async reconcile(): Promise<ReconcileReport> {
    await turnIfDue();
    return Reconciler.of(this.#host.ledger).reconcile(this.#reconciling);
  }
}

// What grows by itself is loaded only where there is such a grant.
function lookForRoom(host: Host): void {
  const pods = unlessRefused(() => host.ledger.read()?.assignments.pods) ?? [];
  if (pods.some(({ elastic }) => elastic !== undefined)) followCpus(host, pods);
}

function takeBack({ host, lifetime }: ManagerParts): void {
  void retry(() => lifetime.isOver || reclaim(host), {
    mostAttempts: RECLAIM_ATTEMPTS,
    onError: (error) => publishError(host, 'watch', error),
  });
}
