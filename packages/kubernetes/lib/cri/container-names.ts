// ContainerNames: finds the container that a name means. Pure.
import { NodeError } from '../base/errors.js';

/** The names of a container. */
export interface NamedContainer {
  readonly id: string;
  readonly name: string;
  readonly pod: string;
  readonly namespace: string;
}

/** `namespace/pod/container`. */
export const fullName = ({ namespace, pod, name }: NamedContainer) => `${namespace}/${pod}/${name}`;

/** The length to which runtimes' own tools cut ids. */
const ID_LENGTH = 13;

export const describeContainer = (container: NamedContainer) =>
  `${fullName(container)} (${container.id.slice(0, ID_LENGTH)})`;

function hasName({ name, pod, namespace }: NamedContainer, text: string): boolean {
  const parts = text.split('/');
  const [ofContainer, ofPod, ofNamespace] = parts.reverse();
  if (parts.length > 3 || ofContainer !== name) return false;
  return (ofPod ?? pod) === pod && (ofNamespace ?? namespace) === namespace;
}

/**
 * The container with this id, or else the only one with this name (`container`, `pod/container` or
 * `namespace/pod/container`) or this prefix of its id.
 * @throws ERR_CONTAINER_UNKNOWN, with the running ones; ERR_CONTAINER_AMBIGUOUS, with the
 *   candidates
 */
export function chooseContainer<Container extends NamedContainer>(
  containers: readonly Container[],
  text: string,
): Container {
  const exact = containers.find(({ id }) => id === text);
  if (exact) return exact;
  const isCandidate = (each: Container) => hasName(each, text) || (text !== '' && each.id.startsWith(text));
  const candidates = containers.filter(isCandidate);
  if (candidates.length === 1) return candidates[0]!;
  if (candidates.length > 1) {
    const names = candidates.map(describeContainer);
    throw new NodeError('ERR_CONTAINER_AMBIGUOUS', `"${text}" may mean ${names.join(' or ')}: give an id`, {
      value: text,
      valid: candidates.map(({ id }) => id),
    });
  }
  const names = containers.map(describeContainer);
  const running = names.length === 0 ? 'none runs' : `running are ${names.join(', ')}`;
  throw new NodeError('ERR_CONTAINER_UNKNOWN', `no running container is "${text}": ${running}`, {
    value: text,
    valid: containers.map(({ id }) => id),
  });
}
