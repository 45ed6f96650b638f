// NriHandlers: what a plugin does at each call of the runtime.
import type { Call } from '../ttrpc/server.js';
import type {
  Container,
  ContainerAdjustment,
  ContainerUpdate,
  LinuxResources,
  PodSandbox,
  Runtime,
} from './messages.js';

/**
 * An error that a handler throws is the answer, by its message, and the runtime fails what it was
 * about to do. A handler that takes longer than the runtime's `requestTimeout` (2 s where it does
 * not say) loses its connection, and the runtime goes on as if there was no plugin. Handlers are
 * called in the order of the requests, which does not wait for the answer before.
 */
export interface NriHandlers {
  /** Before anything else, in each session. */
  configure?(runtime: Runtime): void | Promise<void>;
  /** All pods and containers, once in each session before any other call but `configure`. */
  synchronize(
    pods: readonly PodSandbox[],
    containers: readonly Container[],
    call: Call,
  ): Promise<readonly ContainerUpdate[]>;
  createContainer(
    pod: PodSandbox,
    container: Container,
    call: Call,
  ): Promise<{ adjust?: ContainerAdjustment; updates?: readonly ContainerUpdate[] }>;
  /** `resources`: what is asked for. An update of this container in the answer takes its place. */
  updateContainer(
    pod: PodSandbox,
    container: Container,
    resources: LinuxResources,
    call: Call,
  ): Promise<readonly ContainerUpdate[]>;
  stopContainer(pod: PodSandbox, container: Container, call: Call): Promise<readonly ContainerUpdate[]>;

  // Events: the runtime sends those only that have a handler.
  runPodSandbox?(pod: PodSandbox, call: Call): void | Promise<void>;
  stopPodSandbox?(pod: PodSandbox, call: Call): void | Promise<void>;
  removePodSandbox?(pod: PodSandbox, call: Call): void | Promise<void>;
  postCreateContainer?(pod: PodSandbox, container: Container, call: Call): void | Promise<void>;
  startContainer?(pod: PodSandbox, container: Container, call: Call): void | Promise<void>;
  postStartContainer?(pod: PodSandbox, container: Container, call: Call): void | Promise<void>;
  postUpdateContainer?(pod: PodSandbox, container: Container, call: Call): void | Promise<void>;
  removeContainer?(pod: PodSandbox, container: Container, call: Call): void | Promise<void>;
}

/** Numbers of the protocol's `Event`. */
export const Event = {
  runPodSandbox: 1,
  stopPodSandbox: 2,
  removePodSandbox: 3,
  createContainer: 4,
  postCreateContainer: 5,
  startContainer: 6,
  postStartContainer: 7,
  updateContainer: 8,
  postUpdateContainer: 9,
  stopContainer: 10,
  removeContainer: 11,
} as const;

export type EventName = keyof typeof Event;
export type PodEvent = 'runPodSandbox' | 'stopPodSandbox' | 'removePodSandbox';

/** The mask by which a plugin subscribes to what it has handlers for. */
export function eventMask(handlers: NriHandlers): number {
  const names = Object.keys(Event) as EventName[];
  return names.filter((name) => handlers[name]).reduce((mask, name) => mask | (1 << (Event[name] - 1)), 0);
}
