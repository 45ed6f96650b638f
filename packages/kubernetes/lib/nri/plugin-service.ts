// PluginService: passes the calls of a runtime, by their names on the wire, to the handlers of a
// plugin.
import type { Message } from '../protobuf/schema.js';
import type { Call, Handler } from '../ttrpc/server.js';
import { Status, StatusError } from '../ttrpc/status.js';
import { Event, type EventName, eventMask, type NriHandlers, type PodEvent } from './handlers.js';
import type { Container, PodSandbox, Runtime } from './messages.js';
import { decode, encode } from './protocol.js';
import { RuntimeState } from './runtime-state.js';

const EMPTY = new Uint8Array(0);

type ContainerEvent = Exclude<EventName, PodEvent | 'createContainer' | 'updateContainer' | 'stopContainer'>;

const POD_EVENTS = ['runPodSandbox', 'stopPodSandbox', 'removePodSandbox'] as const satisfies PodEvent[];
const CONTAINER_EVENTS = [
  'postCreateContainer',
  'startContainer',
  'postStartContainer',
  'postUpdateContainer',
  'removeContainer',
] as const satisfies ContainerEvent[];

// Calls that nothing here subscribes to; a runtime that makes them still gets an answer.
const UNUSED = ['UpdatePodSandbox', 'PostUpdatePodSandbox', 'ValidateContainerAdjustment'];

export interface Milestones {
  configured(runtime: Runtime): void;
  /** The first Synchronize has been answered. */
  synchronized(): void;
  /** Configure or Synchronize was answered with an error: the session is useless. */
  failed(method: string, error: unknown): void;
  /** The runtime announces its shutdown. */
  shutdown(): void;
}

/**
 * The methods of `nri.pkg.api.v1alpha1.Plugin`. Events come by StateChange (before NRI 0.12) or by
 * their own calls; both lead to the same handler. Until Synchronize has been answered, calls that
 * need the runtime's state are refused with FAILED_PRECONDITION.
 */
export class PluginService {
  private state = new RuntimeState();
  private isSynchronized = false;

  constructor(
    private readonly handlers: NriHandlers,
    private readonly milestones: Milestones,
  ) {}

  get methods(): Record<string, Handler> {
    const methods: Record<string, Handler> = {
      Configure: this.vital('Configure', (payload) => this.configure(payload)),
      Synchronize: this.vital('Synchronize', (payload, call) => this.synchronize(payload, call)),
      CreateContainer: (payload, call) =>
        this.createContainer(decode('CreateContainerRequest', payload), call),
      UpdateContainer: (payload, call) =>
        this.updateContainer(decode('UpdateContainerRequest', payload), call),
      StopContainer: (payload, call) => this.stopContainer(decode('StopContainerRequest', payload), call),
      StateChange: (payload, call) => this.stateChange(decode('StateChangeEvent', payload), call),
      Shutdown: () => {
        this.milestones.shutdown();
        return EMPTY;
      },
    };
    for (const name of [...POD_EVENTS, ...CONTAINER_EVENTS]) {
      methods[name[0]!.toUpperCase() + name.slice(1)] = (payload, call) =>
        this.event(name, decode('EventRequest', payload), call);
    }
    for (const name of UNUSED) methods[name] = () => EMPTY;
    return methods;
  }

  private vital(method: string, handle: Handler): Handler {
    return async (payload, call) => {
      try {
        return await handle(payload, call);
      } catch (error) {
        this.milestones.failed(method, error);
        throw error;
      }
    };
  }

  private async configure(payload: Uint8Array): Promise<Uint8Array> {
    const runtime = runtimeOf(decode('ConfigureRequest', payload));
    await this.handlers.configure?.(runtime);
    this.milestones.configured(runtime);
    return encode('ConfigureResponse', { events: eventMask(this.handlers) });
  }

  private async synchronize(payload: Uint8Array, call: Call): Promise<Uint8Array> {
    const { state } = this;
    if (state.add(payload)) return encode('SynchronizeResponse', { more: true });
    this.state = new RuntimeState();
    const update = await this.handlers.synchronize(state.pods, state.containers, call);
    const answer = encode('SynchronizeResponse', { update });
    this.isSynchronized = true;
    this.milestones.synchronized();
    return answer;
  }

  private async createContainer(request: Message, call: Call): Promise<Uint8Array> {
    const { pod, container } = this.subject(request);
    const { adjust, updates } = await this.handlers.createContainer(pod, container, call);
    return encode('CreateContainerResponse', { adjust, update: updates });
  }

  private async updateContainer(request: Message, call: Call): Promise<Uint8Array> {
    const { pod, container } = this.subject(request);
    const resources = request.linux_resources ?? decode('LinuxResources', EMPTY);
    const update = await this.handlers.updateContainer(pod, container, resources, call);
    return encode('UpdateContainerResponse', { update });
  }

  private async stopContainer(request: Message, call: Call): Promise<Uint8Array> {
    const { pod, container } = this.subject(request);
    const update = await this.handlers.stopContainer(pod, container, call);
    return encode('StopContainerResponse', { update });
  }

  private stateChange(request: Message, call: Call): Promise<Uint8Array> | Uint8Array {
    const name = [...POD_EVENTS, ...CONTAINER_EVENTS].find((each) => Event[each] === request.event);
    // A newer runtime has events that nothing here subscribes to.
    return name ? this.event(name, request, call) : EMPTY;
  }

  private async event(name: PodEvent | ContainerEvent, request: Message, call: Call): Promise<Uint8Array> {
    if (isPodEvent(name)) await this.handlers[name]?.(this.podOf(request), call);
    else await this.containerEvent(name, request, call);
    return EMPTY;
  }

  private async containerEvent(name: ContainerEvent, request: Message, call: Call): Promise<void> {
    const { pod, container } = this.subject(request);
    await this.handlers[name]?.(pod, container, call);
  }

  private subject(request: Message): { pod: PodSandbox; container: Container } {
    const pod = this.podOf(request);
    if (!request.container) throw new StatusError(Status.INVALID_ARGUMENT, 'the request has no container');
    return { pod, container: request.container };
  }

  private podOf(request: Message): PodSandbox {
    if (!this.isSynchronized) {
      throw new StatusError(Status.FAILED_PRECONDITION, 'the plugin has not been synchronized yet');
    }
    if (!request.pod) throw new StatusError(Status.INVALID_ARGUMENT, 'the request has no pod');
    return request.pod;
  }
}

function isPodEvent(name: PodEvent | ContainerEvent): name is PodEvent {
  return (POD_EVENTS as readonly string[]).includes(name);
}

function runtimeOf(request: Message): Runtime {
  return {
    name: request.runtime_name,
    version: request.runtime_version,
    config: request.config,
    nriVersion: request.NRI_version || undefined,
    registrationTimeout: request.registration_timeout || undefined,
    requestTimeout: request.request_timeout || undefined,
  };
}
