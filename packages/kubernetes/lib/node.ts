// NumalignNode: serves the containers of one machine.
import type { Manager } from 'numalign';
import type { Condition } from './base/condition.js';
import type { Log } from './base/log.js';
import { reported } from './base/reported.js';
import { CpusetFiles, checkHierarchy } from './cgroups/cpuset-files.js';
import { refuseHiddenProcesses } from './cgroups/hidden-processes.js';
import type { FindClaim } from './claims/claimed-holdings.js';
import { ContainerHandlers } from './containers/container-handlers.js';
import type { KnownContainer } from './containers/inventory.js';
import { KINDS, type Kind, Reports } from './containers/reports.js';
import { RuntimeTeller } from './cri/runtime-teller.js';
import { NO_EVENTS, type RecordEvent, THIS_NODE } from './events/event.js';
import { type Metrics, NO_METRICS } from './metrics/metrics.js';
import { UndoneContainers } from './neighbours/undone-containers.js';
import { type CreationOutcomes, withOutcomes } from './nri/creation-outcomes.js';
import type { Runtime } from './nri/messages.js';
import { NRI_SOCKET, NriPlugin, type NriPluginOptions } from './nri/plugin.js';
import { CallsInProgress, observedHandlers } from './observation/observed-handlers.js';
import type { RestoreAllocation } from './placement/allocation.js';
import { type ContainerPolicy, NO_POLICY } from './placement/container-policy.js';
import { grantName } from './placement/container-request.js';
import type { FindManifest } from './placement/whole-pod.js';
import { SliceFiles } from './slices/slice-files.js';
import { resetSlices, Slices } from './slices/slices.js';

export { NRI_SOCKET };

export const SLICE_MODES = ['pool', 'all'] as const;
export type SliceMode = (typeof SLICE_MODES)[number];

/** Options of {@link NumalignNode}. */
export interface NumalignNodeOptions {
  /**
   * The manager whose policy places containers. The caller closes it. Its `lockTimeoutMs` limits
   * how long a container waits: a runtime waits for a plugin at most 2 s.
   */
  readonly manager: Manager;
  /** Default: {@link NRI_SOCKET}. */
  readonly nriSocket?: string;
  /**
   * The plugin's name at the runtime, which also begins the names of its grants. Each runtime of a
   * machine needs a plugin with a different name. Default: numalign.
   */
  readonly name?: string;
  /**
   * Two digits: runtimes call plugins in this order. Default: 90, after plugins that add devices.
   */
  readonly index?: string;
  /**
   * The device plugin's function, see {@link DevicePlugin.restore}. Default: a container whose
   * allocation is not on record is refused.
   */
  readonly restoreAllocation?: RestoreAllocation;
  /** The DRA driver's function. Default: a container with a claim of numalign is refused. */
  readonly findClaim?: FindClaim;
  /**
   * Finds the manifest of a pod: then a Guaranteed pod is placed with all its containers when the
   * first one is created. Default: each container is placed by itself.
   */
  readonly findManifest?: FindManifest;
  /**
   * The runtime's CRI socket, over which it is told where containers run if that cannot be done over
   * NRI (before 0.12.2). Null: it is not told then. Default: CONTAINER_RUNTIME_ENDPOINT, or the first
   * known socket that exists.
   */
  readonly runtimeSocket?: string | null;
  /** The folder of the machine's cpuset hierarchy. Default: where it is mounted. */
  readonly cgroupRoot?: string;
  /** Asked for each container. Default: as the manager was opened. */
  readonly policy?: () => ContainerPolicy;
  readonly log?: Log;
  /** Where it counts what it does. Default: nothing is counted. */
  readonly metrics?: Metrics;
  /** Tells those who look at a pod or the node. Default: nothing is told. */
  readonly recordEvent?: RecordEvent;
  /**
   * `pool`: the kubelet's slices have the shared pool, and the CPUs of the containers inside; they keep
   * them when this ends. `all`: they have all CPUs again. Default: they are left alone.
   */
  readonly slices?: SliceMode | undefined;
  /** Hears of each container that has a place, or has none. */
  readonly refusals?: Pick<CreationOutcomes, 'admitted' | 'refused'> | undefined;
  /** Called when {@link NumalignNode.condition} has changed. */
  readonly conditionChanged?: () => void;
}

const NO_POD_SCOPE =
  'topologyManagerScope is pod, which needs all containers of a pod before the first: ' +
  'a runtime names one at a time, and each is placed by itself, as with container; --whole-pods has ' +
  'them from the API server';

/**
 * A plugin of a container runtime (NRI, the Node Resource Interface). It creates containers on
 * their CPUs and memory nodes, and moves others off these CPUs in the same step.
 */
export class NumalignNode {
  readonly #handlers: ContainerHandlers;
  readonly #plugin: NriPlugin;
  readonly #slices: Slices | undefined;
  readonly #resetSlices: (() => void) | undefined;
  readonly #teller: RuntimeTeller;
  readonly #calls = new CallsInProgress();
  readonly #nriSocket: string;
  readonly #refuseHidden: () => void;
  readonly #warnOfScope: () => void;

  /** @throws ERR_CGROUP if there is no cgroup hierarchy with cpusets */
  constructor({
    manager,
    nriSocket = NRI_SOCKET,
    name = 'numalign',
    index = '90',
    restoreAllocation,
    findClaim,
    findManifest,
    runtimeSocket: socket,
    cgroupRoot,
    policy = () => NO_POLICY,
    log: givenLog = () => {},
    metrics = NO_METRICS,
    recordEvent = NO_EVENTS,
    refusals,
    slices,
    conditionChanged = () => {},
  }: NumalignNodeOptions) {
    const log = reported(givenLog);
    const cpusets = new CpusetFiles(cgroupRoot === undefined ? undefined : checkHierarchy(cgroupRoot));
    const reports = new Reports({ prefix: name, log, metrics, recordEvent });
    const files = new SliceFiles(cpusets.root);
    const containers = () => this.#handlers?.containers ?? [];
    // Its listener comes first: containers need their CPUs in the slices before they are moved.
    this.#slices =
      slices === 'pool' ? new Slices({ manager, prefix: name, files, containers, log }) : undefined;
    if (slices === 'all') this.#resetSlices = () => resetSlices(files, containers(), log);
    this.#handlers = new ContainerHandlers({
      ...{ manager, prefix: name, cpusets, restoreAllocation, findClaim, findManifest, policy, log, reports },
      tell: (update) => this.#teller.tell(update),
    });
    const undone = new UndoneContainers({ socketPath: nriSocket }, log);
    const handlers = withOutcomes(observedHandlers(this.#handlers, this.#calls, { reports, metrics, log }), {
      admitted: (pod, container) => refusals?.admitted(pod, container),
      refused: (pod, container, error) => refusals?.refused(pod, container, error),
      undone: (pod, container) => undone.report(grantName(name, pod, container)),
    });
    this.#plugin = new NriPlugin({
      ...{ socketPath: nriSocket, name, index, handlers, log },
      ...sessionEvents(recordEvent, metrics, conditionChanged),
    });
    this.#nriSocket = nriSocket;
    this.#show(metrics);
    this.#teller = new RuntimeTeller({
      socket,
      runtime: () => this.#plugin.session?.runtime,
      updateContainers: (updates) => this.#plugin.updateContainers(updates),
    });
    this.#refuseHidden = () => refuseHiddenProcesses(cpusets.version);
    this.#warnOfScope = () => {
      if (manager.placement.scope === 'pod' && !findManifest) log('warn', NO_POD_SCOPE);
    };
  }

  /**
   * Resolves once the runtime has reported all running containers, and they have their places.
   * Waits for a runtime that has not started.
   * @throws NodeError if the plugin can never be registered; ERR_CGROUP if cgroups do not show the
   *   processes of containers here
   */
  async start(): Promise<void> {
    this.#refuseHidden();
    this.#warnOfScope();
    await this.#plugin.start();
    this.#slices?.start();
    this.#resetSlices?.();
  }

  /** The containers that the runtime has reported, and where they run. */
  get containers(): readonly KnownContainer[] {
    return this.#handlers.containers;
  }

  /** A container with processes, for people, that has one of these grants of claims. */
  claimUser(grants: readonly string[]): string | undefined {
    return this.#handlers.claimUser(grants);
  }

  /**
   * How often a container was put back since the start: another program had written its cpuset.
   */
  get repairs(): number {
    return this.#handlers.repairs;
  }

  /** Whether the runtime calls this plugin. */
  get condition(): Condition {
    const { session, flaw } = this.#plugin;
    const text = session
      ? `registered with ${nameOf(session.runtime)}`
      : (flaw ?? `waits for ${this.#nriSocket}`);
    return { part: 'nri', isMet: session !== undefined, isVital: true, text };
  }

  /** The call of the runtime that has not been answered for the longest time, if there is one. */
  get oldestCall(): { readonly name: string; readonly ms: number } | undefined {
    return this.#calls.oldest;
  }

  #show(metrics: Metrics): void {
    metrics.gauge('containers', 'Containers that the runtime has, by what they have.', ['kind'], () => {
      const kinds = this.containers.map(kindOf);
      return KINDS.map((kind) => [{ kind }, kinds.filter((each) => each === kind).length] as const);
    });
    metrics.gauge(
      'runtime_info',
      'The runtime with which the plugin is registered; nothing without one.',
      ['name', 'version'],
      () => {
        const { name, version } = this.#plugin.session?.runtime ?? {};
        return name === undefined || version === undefined ? [] : [[{ name, version }, 1]];
      },
    );
    metrics.gauge(
      'oldest_call_seconds',
      'How long the oldest call of the runtime without an answer has waited.',
      [],
      () => [[{}, (this.oldestCall?.ms ?? 0) / 1000]],
    );
  }

  /** Containers and their grants stay as they are. */
  async close(): Promise<void> {
    await this.#plugin.close();
    this.#handlers.close();
    this.#slices?.close();
    this.#teller.close();
  }
}

const nameOf = (runtime: Runtime | undefined): string =>
  runtime ? `${runtime.name} ${runtime.version}` : 'a runtime';

const kindOf = ({ placement }: KnownContainer): Kind =>
  placement?.cpus ? 'exclusive' : placement ? 'booked' : 'shared';

/** Counts sessions, and tells those who look at the node when they begin and end. */
function sessionEvents(
  recordEvent: RecordEvent,
  metrics: Metrics,
  conditionChanged: () => void,
): Pick<NriPluginOptions, 'connected' | 'disconnected'> {
  const sessions = metrics.counter('sessions_total', 'Sessions with the runtime that have begun.');
  return {
    connected: (runtime) => {
      sessions.add();
      const message = `numalign-node places the containers of ${nameOf(runtime)}`;
      recordEvent({ about: THIS_NODE, type: 'Normal', reason: 'RuntimeConnected', message });
      conditionChanged();
    },
    disconnected: (flaw) => {
      const why = flaw?.message ?? 'the runtime has closed the connection';
      const message = `numalign-node places no containers: ${why}`;
      recordEvent({ about: THIS_NODE, type: 'Warning', reason: 'RuntimeDisconnected', message });
      conditionChanged();
    },
  };
}
