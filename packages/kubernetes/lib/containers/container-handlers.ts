// ContainerHandlers: numalign's answers to a container runtime (NRI). The runtime calls one handler
// after the other, and waits for each answer.
import type { Manager, StateChange } from 'numalign';
import type { Log } from '../base/log.js';
import type { CpusetFiles } from '../cgroups/cpuset-files.js';
import type { FindClaim } from '../claims/claimed-holdings.js';
import { hasMemoryPolicy } from '../nri/abilities.js';
import type { NriHandlers } from '../nri/handlers.js';
import {
  type Container,
  type ContainerAdjustment,
  ContainerState,
  type ContainerUpdate,
  type LinuxResources,
  type PodSandbox,
  type Runtime,
} from '../nri/messages.js';
import { AffinePlaces } from '../placement/affine-places.js';
import type { RestoreAllocation } from '../placement/allocation.js';
import { CHOICE_ANNOTATION } from '../placement/annotations.js';
import { type ContainerPolicy, NO_POLICY } from '../placement/container-policy.js';
import {
  askedRequest,
  type ContainerRequest,
  containerRequest,
  grantName,
  ruleSubject,
} from '../placement/container-request.js';
import { chosenCpusOf, withResources } from '../placement/container-update.js';
import { matching, type Rule } from '../placement/rules.js';
import type { FindManifest } from '../placement/whole-pod.js';
import { type CensusEntry, takeCensus } from './census.js';
import { adjustment, cpusOf, update } from './container-placement.js';
import { Drift } from './drift.js';
import { GrantedContainers } from './granted-containers.js';
import { Grants } from './grants.js';
import { Inventory, isExclusive, type KnownContainer, knownRequest } from './inventory.js';
import { LateAdmissions } from './late-admissions.js';
import { type Reports, subjectOf } from './reports.js';
import { RuntimeUpdates, type TellRuntime } from './runtime-updates.js';
import { Sandboxes } from './sandboxes.js';
import { SharedContainers } from './shared-containers.js';
import { SharedDomains } from './shared-domains.js';
import { correctStartCpuset } from './start-cpuset.js';

export interface ContainerHandlersOptions {
  readonly manager: Manager;
  /** The prefix of grants' names; a different one for each runtime of a machine. */
  readonly prefix: string;
  readonly cpusets: CpusetFiles;
  /** Undefined without a device plugin. */
  readonly restoreAllocation?: RestoreAllocation | undefined;
  /** Undefined without a DRA driver. */
  readonly findClaim?: FindClaim | undefined;
  /** Undefined: containers are placed one by one. */
  readonly findManifest?: FindManifest | undefined;
  /** Tells the runtime outside of an answer. */
  readonly tell: TellRuntime;
  /** Default: as the manager was opened. */
  readonly policy?: () => ContainerPolicy;
  readonly log: Log;
  readonly reports: Reports;
}

const isPresent = ({ state }: Container) => state !== ContainerState.STOPPED;

export class ContainerHandlers implements NriHandlers {
  readonly #manager: Manager;
  readonly #prefix: string;
  readonly #cpusets: CpusetFiles;
  readonly #log: Log;
  readonly #reports: Reports;
  readonly #grants: Grants;
  readonly #inventory = new Inventory();
  readonly #granted: GrantedContainers;
  readonly #shared: SharedContainers;
  readonly #domains: SharedDomains;
  readonly #policy: () => ContainerPolicy;
  readonly #sandboxes: Sandboxes;
  readonly #drift: Drift;
  readonly #late: LateAdmissions;
  readonly #runtimeUpdates: RuntimeUpdates;
  // The number of answers in progress. Changes in the meantime are part of them; an answer that
  // fails has none.
  #answers = 0;
  // Whether the runtime sets memory policies.
  #bindsMemory = false;

  constructor(options: ContainerHandlersOptions) {
    const {
      manager,
      prefix,
      cpusets,
      restoreAllocation,
      findClaim,
      findManifest,
      tell,
      log,
      reports,
      policy = () => NO_POLICY,
    } = options;
    this.#manager = manager;
    this.#prefix = prefix;
    this.#cpusets = cpusets;
    this.#log = log;
    this.#reports = reports;
    this.#policy = policy;
    const moved = (uid: string) => {
      this.#granted.followMove(uid);
      this.#followPool();
    };
    const records = { manager, prefix, restoreAllocation, findClaim, findManifest, policy, log };
    this.#grants = new Grants({ ...records, moved });
    const [inventory, grants] = [this.#inventory, this.#grants];
    const runtimeUpdates = new RuntimeUpdates({ inventory, tell, log });
    this.#runtimeUpdates = runtimeUpdates;
    const affinePlaces = new AffinePlaces({ neighbours: inventory, manager, log });
    this.#granted = new GrantedContainers({ inventory, grants, cpusets, runtimeUpdates, affinePlaces, log });
    this.#shared = new SharedContainers({ inventory, cpusets, runtimeUpdates, log });
    this.#domains = new SharedDomains({ manager, inventory });
    this.#sandboxes = new Sandboxes({ manager, cpusets, log });
    this.#drift = new Drift({ inventory, cpusets, runtimeUpdates, log, reports });
    const followPool = this.#followPool;
    this.#late = new LateAdmissions({ inventory, grants, granted: this.#granted, reports, followPool, log });
    manager.on('change', this.#followRecord);
    manager.on('change', reports.changed);
  }

  close(): void {
    this.#manager.off('change', this.#followRecord);
    this.#manager.off('change', this.#reports.changed);
    this.#runtimeUpdates.close();
    this.#grants.close();
    this.#drift.close();
    this.#late.close();
  }

  /** The containers that the runtime has reported. */
  get containers(): readonly KnownContainer[] {
    return this.#inventory.containers;
  }

  /** A container with processes, for people, that has one of these grants of claims. */
  claimUser(grants: readonly string[]): string | undefined {
    const users = this.#inventory.containers.filter(({ placement }) =>
      placement?.claimGrants.some((grant) => grants.includes(grant)),
    );
    return users.find(({ cgroupsPath }) => !this.#cpusets.isLeft(cgroupsPath))?.title;
  }

  /** How often a container was put back that another program had moved. */
  get repairs(): number {
    return this.#drift.repairs;
  }

  configure(runtime: Runtime): void {
    this.#bindsMemory = hasMemoryPolicy(runtime);
  }

  /** Admits everything that runs where it is, as far as possible. */
  synchronize(pods: readonly PodSandbox[], containers: readonly Container[]): Promise<ContainerUpdate[]> {
    return this.#answer(async () => {
      await this.#grants.endAllBut(pods, containers.filter(isPresent));
      const entries = await this.#takeCensus(pods, containers.filter(isPresent));
      this.#inventory.clear();
      for (const pod of pods) this.#inventory.putPod(pod);
      this.#sandboxes.place(pods);
      const knownContainers = entries.map((entry) => this.#put(entry));
      this.#granted.keepOf(pods);
      // Nothing waits for this, and each may be a commit.
      void this.#granted.setOwners(
        knownContainers.filter((_, i) => entries[i]!.container.state === ContainerState.RUNNING),
      );
      for (const container of knownContainers) this.#drift.follow(container);
      const exclusive = entries.filter(({ placement }) => placement?.cpus).length;
      this.#log('info', `${entries.length} containers run, ${exclusive} on exclusive CPUs`);
      return [...this.#granted.updates(), ...this.#shared.updates(this.#grants.pool)];
    });
  }

  /** Creates the container on its CPUs, and moves others off them in the same step. */
  createContainer(
    pod: PodSandbox,
    container: Container,
  ): Promise<{ adjust: ContainerAdjustment; updates: ContainerUpdate[] }> {
    return this.#answer(async () => {
      // Only here: a container that runs already keeps what it has.
      const asked = askedRequest(this.#prefix, pod, container, this.#policy().rules);
      const placement = await this.#granted.place(pod, container, asked);
      const request = this.#inDomain(pod, container, asked);
      const { pool } = this.#grants;
      const cpus = cpusOf(placement, pool, request.chosenCpus);
      this.#put({ pod, container, request, placement, cpus });
      if (placement && placement.claimGrants.length > 0 && request.exclusiveCpus > 0)
        this.#reports.doubled(pod, container, request.exclusiveCpus);
      if (request.quiet && placement)
        this.#reports.disturbed(pod, container, this.#grants.disturbances(placement));
      return {
        adjust: adjustment(cpus, placement, request, { bindsMemory: this.#bindsMemory }),
        updates: this.#shared.updates(pool, container.id),
      };
    });
  }

  postCreateContainer(): void {
    this.#shared.verify(this.#grants.pool);
  }

  /**
   * The container has its cgroup, but has not run yet. From now on the grant lives as long as the
   * kernel reports processes in the cgroup, or in the pod's. Nothing waits for that.
   */
  async startContainer(pod: PodSandbox, container: Container): Promise<void> {
    const entry = await this.#entryOf(pod, container);
    if (!entry) return;
    void this.#granted.setOwners([entry]);
    const { pool } = this.#grants;
    const cpus = cpusOf(entry.placement, pool, entry.request.chosenCpus);
    const isCorrected = correctStartCpuset(entry, cpus, { cpusets: this.#cpusets, log: this.#log });
    this.#inventory.put({ ...entry, cpus });
    if (isCorrected) this.#runtimeUpdates.owe(entry);
    this.#drift.follow(entry);
  }

  /** Another client changes a container: it keeps its place, and may get more or fewer CPUs. */
  updateContainer(
    pod: PodSandbox,
    container: Container,
    resources: LinuxResources,
  ): Promise<ContainerUpdate[]> {
    return this.#answer(async () => {
      const entry = await this.#entryOf(pod, container);
      if (!entry) return [];
      const request = containerRequest(
        this.#prefix,
        pod,
        withResources(container, resources),
        entry.request.rule,
      );
      const placement = await this.#granted.resize(entry, request);
      const chosenCpus = isExclusive(entry) ? null : (chosenCpusOf(resources) ?? entry.request.chosenCpus);
      const { pool } = this.#grants;
      const cpus = cpusOf(placement, pool, chosenCpus);
      this.#late.asks(entry.id, request);
      this.#inventory.put({ ...entry, request: knownRequest({ ...request, chosenCpus }), placement, cpus });
      return [update(entry.id, cpus, placement?.memoryNodes), ...this.#shared.updates(pool, entry.id)];
    });
  }

  stopContainer(_pod: PodSandbox, { id }: Container): Promise<ContainerUpdate[]> {
    return this.#answer(async () => {
      await this.#granted.end(id);
      return this.#shared.updates(this.#grants.pool);
    });
  }

  async removeContainer(_pod: PodSandbox, { id }: Container): Promise<void> {
    await this.#granted.end(id);
    this.#shared.verify(this.#grants.pool);
  }

  runPodSandbox(pod: PodSandbox): void {
    if (this.#inventory.hasOtherSandbox(pod)) {
      this.#inventory.succeed(pod);
      this.#granted.keepOf([pod]);
    }
    this.#inventory.putPod(pod);
    this.#sandboxes.place([pod]);
  }

  /** A kubelet removes a sandbox long after it has ended. Devices are the pod's until then. */
  async stopPodSandbox({ id }: PodSandbox): Promise<void> {
    await this.#granted.endPod(id);
    this.#shared.verify(this.#grants.pool);
  }

  async removePodSandbox({ id: podId }: PodSandbox): Promise<void> {
    await this.#granted.endPod(podId, { withAllocations: true });
    this.#inventory.removePod(podId);
    this.#shared.verify(this.#grants.pool);
  }

  async #takeCensus(pods: readonly PodSandbox[], containers: readonly Container[]): Promise<CensusEntry[]> {
    const entries = await takeCensus(pods, containers, {
      ...{ grants: this.#grants, prefix: this.#prefix, log: this.#log, reports: this.#reports },
      ruleOf: (pod, container) => this.#ruleOf(pod, container),
    });
    this.#late.found(entries);
    return entries;
  }

  /**
   * A container that the runtime names. One that was created while the plugin registered is in no
   * Synchronize, and is placed now.
   */
  async #entryOf(pod: PodSandbox, container: Container): Promise<KnownContainer | undefined> {
    const found = this.#inventory.find(container.id);
    if (found) return found;
    const [entry] = await this.#takeCensus([pod], [container]);
    return entry && this.#put(entry);
  }

  #ruleOf(pod: PodSandbox, container: Container): Rule | undefined {
    return matching(this.#policy().rules, ruleSubject(pod, container));
  }

  /** A shared container keeps to what its creator has chosen, else to what its rule says. */
  #inDomain(pod: PodSandbox, { annotations }: Container, request: ContainerRequest): ContainerRequest {
    const isChosen = request.chosenCpus !== null || CHOICE_ANNOTATION in annotations;
    if (isChosen || request.exclusiveCpus > 0 || !request.rule) return request;
    return { ...request, chosenCpus: this.#domains.choose(pod, request) };
  }

  #put({ pod, container, request, placement, cpus }: CensusEntry): KnownContainer {
    const entry: KnownContainer = {
      id: container.id,
      podId: pod.id,
      title: grantName(this.#prefix, pod, container),
      subject: subjectOf(pod, container),
      cgroupsPath: container.linux?.cgroups_path ?? '',
      request: knownRequest(this.#inDomain(pod, container, request)),
      placement,
      cpus,
    };
    this.#inventory.put(entry);
    this.#inventory.isFirst(pod.id, container.name);
    return entry;
  }

  async #answer<T>(compose: () => Promise<T>): Promise<T> {
    this.#answers++;
    try {
      const answer = await compose();
      this.#answers--;
      return answer;
    } catch (error) {
      this.#answers--;
      this.#followPool();
      throw error;
    }
  }

  // A grant may be released or changed by hand, or by another program.
  readonly #followRecord = (change: StateChange): void => {
    this.#granted.followRecord(change);
    this.#followPool();
    this.#late.changed();
  };

  readonly #followPool = (): void => {
    if (this.#answers === 0) this.#shared.write(this.#grants.pool);
  };
}
