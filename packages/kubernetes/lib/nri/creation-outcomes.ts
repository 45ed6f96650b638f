// CreationOutcomes: what becomes of the containers that a runtime is about to create.
import { HANDLER_NAMES, type NriHandlers } from './handlers.js';
import type { Container, PodSandbox } from './messages.js';

export interface CreationOutcomes {
  /** It has its place, and the runtime creates it. */
  admitted(pod: PodSandbox, container: Container): void;
  /** There is no place for it. */
  refused(pod: PodSandbox, container: Container, error: unknown): void;
  /** The runtime has not created it after all: another plugin, or its own reasons. */
  undone(pod: PodSandbox, container: Container): void;
}

/** The same handlers; `outcomes` are told, and must not throw. */
export function withOutcomes(handlers: NriHandlers, outcomes: CreationOutcomes): NriHandlers {
  // Those that have been answered and do not exist yet.
  const creating = new Set<string>();
  const exists = (container: Container) => creating.delete(container.id);
  const ends = (pod: PodSandbox, container: Container) => {
    if (creating.delete(container.id)) outcomes.undone(pod, container);
  };
  return {
    ...boundHandlers(handlers),
    async createContainer(pod, container, call) {
      try {
        const answer = await handlers.createContainer(pod, container, call);
        creating.add(container.id);
        outcomes.admitted(pod, container);
        return answer;
      } catch (error) {
        outcomes.refused(pod, container, error);
        throw error;
      }
    },
    postCreateContainer(pod, container, call) {
      exists(container);
      return handlers.postCreateContainer?.(pod, container, call);
    },
    startContainer(pod, container, call) {
      exists(container);
      return handlers.startContainer?.(pod, container, call);
    },
    stopContainer(pod, container, call) {
      ends(pod, container);
      return handlers.stopContainer(pod, container, call);
    },
    removeContainer(pod, container, call) {
      ends(pod, container);
      return handlers.removeContainer?.(pod, container, call);
    },
  };
}

// Handlers may be methods of a class, which a spread leaves out.
function boundHandlers(handlers: NriHandlers): NriHandlers {
  const names = HANDLER_NAMES.filter((name) => handlers[name]);
  return Object.fromEntries(
    names.map((name) => [name, (handlers[name] as () => unknown).bind(handlers)]),
  ) as unknown as NriHandlers;
}
