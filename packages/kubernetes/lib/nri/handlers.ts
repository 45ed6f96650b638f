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
 * An error that a handler throws is the answer, with its message, and makes the runtime's action
 * fail. A handler that takes longer than the runtime's `requestTimeout` (2 s if unknown) loses its
 * connection, and the runtime continues as if there were no plugin. Handlers are called in the
 * order of the requests, without waiting for the answer before.
 */
export interface NriHandlers {
  /** Called first in each session. */
  configure?(runtime: Runtime): void | Promise<void>;
  /** Called with all pods and containers, once in each session, before any call but `configure`. */
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
  /** `resources`: what is requested. An update of this container in the answer replaces it. */
  updateContainer(
    pod: PodSandbox,
    container: Container,
    resources: LinuxResources,
    call: Call,
  ): Promise<readonly ContainerUpdate[]>;
  stopContainer(pod: PodSandbox, container: Container, call: Call): Promise<readonly ContainerUpdate[]>;

  // The runtime only sends events that have a handler.
  runPodSandbox?(pod: PodSandbox, call: Call): void | Promise<void>;
  stopPodSandbox?(pod: PodSandbox, call: Call): void | Promise<void>;
  removePodSandbox?(pod: PodSandbox, call: Call): void | Promise<void>;
  postCreateContainer?(pod: PodSandbox, container: Container, call: Call): void | Promise<void>;
  startContainer?(pod: PodSandbox, container: Container, call: Call): void | Promise<void>;
  postStartContainer?(pod: PodSandbox, container: Container, call: Call): void | Promise<void>;
  postUpdateContainer?(pod: PodSandbox, container: Container, call: Call): void | Promise<void>;
  removeContainer?(pod: PodSandbox, container: Container, call: Call): void | Promise<void>;
}

/** The numbers of the protocol's `Event`. */
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

/** All that handlers can have. */
export const HANDLER_NAMES = ['configure', 'synchronize', ...(Object.keys(Event) as EventName[])] as const;

/** The mask that subscribes a plugin to the events of its handlers. */
export function eventMask(handlers: NriHandlers): number {
  const names = Object.keys(Event) as EventName[];
  return names.filter((name) => handlers[name]).reduce((mask, name) => mask | (1 << (Event[name] - 1)), 0);
}
