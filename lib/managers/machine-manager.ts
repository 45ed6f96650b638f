// MachineManager: what a manager does for the machine: its settings, its shared members, devices
// and resources to be granted, and upkeep.
import type { ChildProcess } from 'node:child_process';
import { publishError } from '../admission/diagnostics.js';
import { startShared } from '../admission/grants/shared-child.js';
import type { SharedGroup } from '../admission/grants/shared-group.js';
import type { SharedMemberTarget } from '../admission/grants/shared-membership.js';
import { addSharedMember, removeSharedMember } from '../admission/grants/shared-membership.js';
import { BLIND_MS } from '../admission/manager-watch.js';
import type { Site } from '../admission/site.js';
import { reclaim } from '../admission/transact.js';
import type { Warning } from '../admission/warnings.js';
import { checkOptions } from '../base/check-options.js';
import {
  checkPreferredAllocation,
  type DeviceResource,
  type PreferredAllocation,
} from '../decision/devices/device-resources.js';
import type { HintProvider } from '../decision/hints/hint-provider.js';
import type { Settings } from '../decision/machine-settings.js';
import type { ReconcileReport } from '../enforcement/drift.js';
import type { Config } from '../input/config.js';
import { type DeviceSelection, parseDevices } from '../input/devices.js';
import type { MachineOptions } from '../input/machine-options.js';
import { checkSignal } from '../input/request.js';
import { type KubeletPodHoldings, parseHoldings } from '../kubelet/record/kubelet-holdings.js';
import { type KubeletStatus, kubeletStatus } from '../kubelet/record/kubelet-status.js';
import { type RecordKubeletOptions, recordKubelet } from '../kubelet/record/record-kubelet.js';
import { configure } from '../opening/configure.js';
import { leavePool } from '../opening/pool-membership.js';
import { Reconciler, type Reconciling } from '../reconcile/reconciler.js';
import type { Lifetime } from './lifetime.js';
import { lookAgain } from './manager-emitter.js';
import { ManagerView } from './manager-view.js';

/** The options of {@link Manager.registerDevices}. */
export interface DeviceOptions {
  /**
   * A callback that chooses among the free devices, as a device plugin's GetPreferredAllocation. See
   * docs/devices.md.
   * @default none
   */
  preferredAllocation?: PreferredAllocation;
}

/** What a manager is made of. */
export interface ManagerParts {
  readonly config: Config;
  readonly site: Site;
  readonly resources: Map<string, DeviceResource>;
  readonly lifetime: Lifetime;
  /** What opening has found. */
  readonly found: readonly Warning[];
}

// The lock may be held for long, a disk full.
const RECLAIM_PAUSE_MS = 50;
const RECLAIM_LONGEST_PAUSE_MS = 30_000;

export class MachineManager extends ManagerView {
  readonly #parts: ManagerParts;
  readonly #reconciling: Reconciling;

  /** Use {@link openManager}. */
  constructor(parts: ManagerParts) {
    const { config, site, lifetime, found } = parts;
    const { ledger } = site;
    const endOwnerWatch = ledger.watchOwners(() => takeBack(parts, RECLAIM_PAUSE_MS));
    super({
      ...{ site, lifetime, found },
      placement: config.placement,
      sharedMembers: () => site.enforcer.members?.list() ?? [],
      reclaim: async () => reclaim(site),
      // Its rounds tell.
      isBlind: config.reconcilePeriodMs === 0 || config.reconcilePeriodMs > BLIND_MS,
      release: () => {
        endReconciling();
        leavePool(site);
        endOwnerWatch();
      },
    });
    this.#parts = parts;
    this.#reconciling = {
      ...{ site, placement: config.placement, periodMs: config.reconcilePeriodMs },
      looked: () => lookAgain(this),
      drifted: (drift) => this.emit('drift', drift),
      hotplugged: (hotplug) => this.emit('hotplug', hotplug),
      failed: (error) => {
        if (this.listenerCount('error') > 0) this.emit('error', error);
      },
    };
    const endReconciling = site.topology.isSimulated
      ? () => {}
      : Reconciler.of(ledger).attach(this.#reconciling);
  }

  // One for all, its grants too: what is changed in it all of them see.
  get #site(): Site {
    this.#parts.lifetime.check();
    return this.#parts.site;
  }

  /**
   * Changes the machine's settings for all its users. Grants in force are kept, whatever the new
   * settings say.
   * @throws ERR_INVALID_OPTION; ERR_CONFIG_CONFLICT where nothing would be left to share, or
   *   `cgroupRoot` would change while CPUs are exclusive; ERR_KUBELET_CONFLICT as
   *   {@link openManager}
   */
  async configure(options: MachineOptions): Promise<Settings> {
    await configure(this.#site, this.#parts.config, options);
    return this.settings();
  }

  /**
   * Has devices take part in every admission of this manager: a list of them, or a pattern that
   * selects some of {@link Topology.devices}. Once more for the same resource, it replaces the
   * list: so a device that has fallen ill is told; the callback stays unless another is given. What
   * is granted stays granted, whatever the list says, and so do devices of resources that this
   * manager does not know.
   * @throws ERR_INVALID_OPTION
   */
  registerDevices(resource: string, selection: DeviceSelection, options: DeviceOptions = {}): void {
    const { lifetime, resources } = this.#parts;
    lifetime.check();
    const { preferredAllocation } = checkOptions(options, ['preferredAllocation'], 'registerDevices');
    const devices = parseDevices(selection, this.topology, resource);
    const before = resources.get(resource)?.preferredAllocation;
    const callback = checkPreferredAllocation(preferredAllocation) ?? before;
    resources.set(resource, { name: resource, devices, preferredAllocation: callback });
    lookAgain(this);
  }

  /**
   * Puts on record what the kubelet has given out: CPUs, memory and devices that no numalign process
   * grants from then on, and CPUs that its shared members leave. null: nothing is on record any
   * more. This process is the keeper of the record, which it brings up to date by a call for each
   * change. The record stays where the keeper ends, and another process may keep it then. What the
   * kubelet takes counts: a grant that has some of it stays on record and is flagged (CPU_TAKEN,
   * MEMORY_TAKEN, DEVICE_TAKEN). What is on record already is not committed again.
   * @throws ERR_INVALID_OPTION, ERR_INVALID_LIST, ERR_INVALID_ARGUMENT; ERR_OWNER_ALIVE where another
   *   process that lives keeps the record; ERR_LOCK_TIMEOUT, ERR_STATE_*, ERR_SYSCALL; the signal's
   *   reason
   */
  async recordKubelet(
    pods: readonly KubeletPodHoldings[] | null,
    options: RecordKubeletOptions = {},
  ): Promise<KubeletStatus | null> {
    const site = this.#site;
    const held = pods === null ? null : parseHoldings(pods);
    const { signal } = checkOptions(options, ['signal'], 'recordKubelet');
    return kubeletStatus(await recordKubelet(site, held, checkSignal(signal)), () => true);
  }

  /**
   * Has a resource of your own take part in every admission of this manager, after numalign's and
   * in the order of registration.
   * @throws ERR_INVALID_OPTION for an object that is no provider, or a name that is taken
   */
  addHintProvider(provider: HintProvider): void {
    this.#site.providers.add(provider);
  }

  /**
   * Has a process (with all its threads), or every process in and below a cgroup, run in the shared
   * pool from now on: it leaves CPUs before these are granted, which is read back, and comes back
   * when they are given back. A process by its cpuset, where it can be moved into the shared group
   * below `cgroupRoot`, else by the masks of its threads, of which each keeps its own choice in
   * mind; a cgroup below `cgroupRoot` by its cpuset. A process stays a member until it ends.
   * @throws ERR_UNKNOWN_MEMBER where there is no such process or cgroup; ERR_MEMBER_UNMOVABLE where
   *   it cannot leave the CPUs that are granted, was attached to some of them, or this user may not
   *   move it; ERR_INVALID_OPTION, ERR_SIMULATED_MACHINE, ERR_LOCK_TIMEOUT, ERR_STATE_*
   */
  async addSharedMember(target: SharedMemberTarget): Promise<void> {
    await addSharedMember(this.#site, target);
  }

  /**
   * Has `start` start a child process, synchronously, in the shared pool: it is born there, and a
   * shared member until it ends, see {@link addSharedMember}. Resolves with what `start` answers.
   * @throws ERR_MEMBER_UNMOVABLE where this user may not move it: it is ended then; as
   *   {@link addSharedMember}, and what `start` throws
   */
  async startChild(start: () => ChildProcess): Promise<ChildProcess> {
    return startShared(this.#site, start);
  }

  /**
   * It is moved no more. A process goes back from the shared group to where it was taken from,
   * where no CPU is exclusive and that is known (it was not attached to a grant); else it stays
   * where it is. Resolves with the cgroup of the shared pool that the process is still in; null
   * where it is in none, or is a member by itself.
   * @throws ERR_UNKNOWN_MEMBER; as {@link addSharedMember}
   */
  async removeSharedMember(target: SharedMemberTarget): Promise<SharedGroup | null> {
    return removeSharedMember(this.#site, target);
  }

  /**
   * Compares what is so with what is on record, and repairs it: threads of this process that may
   * run outside of the grant that they are pinned for (a mask inside of it is intent, and left
   * alone) or are out of its cgroup; cgroups below `cgroupRoot` that have vanished, have other
   * CPUs, or are left of grants that are gone; the partition; shared members on CPUs that are
   * somebody's; CPUs of this process's grants that have gone offline or come back. Done after every
   * change and every {@link ManagerOptions.cpuManagerReconcilePeriod} by itself, without keeping
   * the process alive. Where nothing is different, nothing is written and no lock taken. What was
   * repaired twice and is different again is `contested`: it is told once, and left alone until it
   * is found right or the grants change. On a simulated machine there is nothing to do. Tells what
   * it finds by the events `drift` and `hotplug` too.
   * @throws ERR_LOCK_TIMEOUT, ERR_STATE_*, ERR_CGROUP, ERR_MANAGER_CLOSED
   */
  async reconcile(): Promise<ReconcileReport> {
    return Reconciler.of(this.#site.ledger).reconcile(this.#reconciling);
  }
}

// Those that cannot be taken back now may be later.
function takeBack(parts: ManagerParts, pauseMs: number): void {
  const { site, lifetime } = parts;
  reclaim(site).catch((error) => {
    publishError(site, 'watch', error);
    if (pauseMs < RECLAIM_LONGEST_PAUSE_MS && !lifetime.isOver)
      setTimeout(takeBack, pauseMs, parts, 2 * pauseMs).unref();
  });
}
