// Which container a person means. Pure.
import { NodeError } from '../base/errors.js';

/** What containers are known by. */
export interface NamedContainer {
  readonly id: string;
  readonly name: string;
  readonly pod: string;
  readonly namespace: string;
}

/** `namespace/pod/container`. */
export const fullName = ({ namespace, pod, name }: NamedContainer) => `${namespace}/${pod}/${name}`;

/** As runtimes' own tools show ids. */
const ID_LENGTH = 13;

export const describeContainer = (container: NamedContainer) =>
  `${fullName(container)} (${container.id.slice(0, ID_LENGTH)})`;

function hasName({ name, pod, namespace }: NamedContainer, text: string): boolean {
  const parts = text.split('/');
  const [own, ofPod, ofNamespace] = parts.reverse();
  if (parts.length > 3 || own !== name) return false;
  return (ofPod ?? pod) === pod && (ofNamespace ?? namespace) === namespace;
}

/**
 * The container with this id; else the only one with this name (`container`, `pod/container` or
 * `namespace/pod/container`) or whose id begins so.
 * @throws ERR_CONTAINER_UNKNOWN, with those that there are; ERR_CONTAINER_AMBIGUOUS, with those
 *   that may be meant
 */
export function chooseContainer<Container extends NamedContainer>(
  containers: readonly Container[],
  text: string,
): Container {
  const exact = containers.find(({ id }) => id === text);
  if (exact) return exact;
  const isMeant = (each: Container) => hasName(each, text) || (text !== '' && each.id.startsWith(text));
  const meant = containers.filter(isMeant);
  if (meant.length === 1) return meant[0]!;
  if (meant.length > 1) {
    const names = meant.map(describeContainer);
    throw new NodeError('ERR_CONTAINER_AMBIGUOUS', `"${text}" may mean ${names.join(' or ')}: give an id`, {
      value: text,
      valid: meant.map(({ id }) => id),
    });
  }
  const names = containers.map(describeContainer);
  const there = names.length === 0 ? 'none runs' : `there is ${names.join(', ')}`;
  throw new NodeError('ERR_CONTAINER_UNKNOWN', `no running container is "${text}": ${there}`, {
    value: text,
    valid: containers.map(({ id }) => id),
  });
}
