// Checks a plain pod or a Kubernetes manifest, and freezes what it requests. null is a missing
// field, as in Kubernetes.
import { checkOptions, display, isName, NAME, nearestOf } from '../../base/check-options.js';
import { withLast } from '../../base/collections/lists.js';
import type { Fields } from '../../base/shapes.js';
import {
  checkPodAmounts,
  type ParsedContainer,
  type PodRequest,
  parsePodAmounts,
  podResources,
} from './pod-resources.js';
import {
  CONTAINER_KEYS,
  CONTAINER_NAME,
  hasManifestKeys,
  isContainerName,
  POD_KEYS,
  RESOURCES_KEYS,
} from './pod-spec.js';
import { qosOfCaller, qosOfContainers, qosOfWhole } from './qos-class.js';
import {
  type Amounts,
  amountIn,
  type ContainerRequest,
  fail,
  inUnits,
  isExtendedResource,
  isNeverOvercommitted,
  NO_AMOUNTS,
  parseAmounts,
  podShape,
  type ResourceAmounts,
} from './resource-amounts.js';

/** The pod of an acquired grant: one container, whose requests are its limits. */
export function guaranteedPod(
  { uid, name }: Pick<PodRequest, 'uid' | 'name'>,
  container: ContainerRequest,
  isMixed = false,
): PodRequest {
  return {
    uid,
    name,
    qosClass: 'Guaranteed',
    notGuaranteed: null,
    resources: null,
    containers: [container],
    ...(isMixed && { isMixed }),
  };
}

/** The namespace of a pod that names none. */
export const DEFAULT_NAMESPACE = 'default';
function parseName(value: unknown, field: string): string | undefined {
  if (value === undefined || value === null) return undefined;
  return isName(value) ? value : fail(field, value, NAME);
}

function parseKind(restartPolicy: unknown, field: string, isInit: boolean): ContainerRequest['kind'] {
  const isSet = restartPolicy !== undefined && restartPolicy !== null;
  if (!isInit)
    return isSet ? fail(field, restartPolicy, 'left out: only init containers may have one') : 'app';
  if (!isSet) return 'init';
  return restartPolicy === 'Always' ? 'sidecar' : fail(field, restartPolicy, '"Always", or left out');
}

// With `keys`, the object may have no other keys.
function fieldsOf(value: unknown, field: string, keys: readonly string[] | undefined): Fields {
  const fields = podShape.object(value, field);
  return keys === undefined ? fields : checkOptions(fields, keys, field);
}

/** What the containers of a list are. */
interface ContainerList {
  readonly field: string;
  readonly isInit: boolean;
  readonly isManifest: boolean;
}

// As the API server does. A misspelt cpu would be a pod without exclusive CPUs.
function checkResources(amounts: Amounts, field: string): void {
  for (const { resource } of amounts) {
    if (STANDARD.includes(resource) || resource.includes('/') || resource.startsWith('hugepages-')) continue;
    const name = resource.toLowerCase();
    // gpu is as near to cpu as cpus is.
    const nearest = nearestOf(
      name,
      STANDARD.filter((each) => each[0] === name[0]),
    );
    const valid = `${STANDARD.join(', ')}, hugepages-<size> or a name with a domain such as example.com/gpu`;
    fail(field, resource, `keyed by ${nearest === undefined ? valid : `${nearest} (valid are ${valid})`}`);
  }
}

const STANDARD = ['cpu', 'memory', 'ephemeral-storage'];

function parseContainer(
  value: unknown,
  field: string,
  { isInit, isManifest }: ContainerList,
): ParsedContainer {
  const container = fieldsOf(value, field, isManifest ? undefined : CONTAINER_KEYS);
  const { name, resources } = container;
  if (!isContainerName(name)) fail(`${field}.name`, name, CONTAINER_NAME);
  const isNested = resources !== undefined && resources !== null;
  if (isNested && RESOURCES_KEYS.some((key) => container[key] !== undefined && container[key] !== null)) {
    fail(`${field}.resources`, resources, 'left out beside requests or limits of the container');
  }
  const at = isNested ? `${field}.resources` : field;
  const amounts = isNested ? fieldsOf(resources, at, isManifest ? undefined : RESOURCES_KEYS) : container;
  const hasRequests = amounts.requests !== undefined && amounts.requests !== null;
  const ownRequests = hasRequests ? parseAmounts(amounts.requests, `${at}.requests`) : undefined;
  const limits = parseAmounts(amounts.limits, `${at}.limits`);
  if (isManifest) {
    checkResources(ownRequests ?? NO_AMOUNTS, `${at}.requests`);
    checkResources(limits, `${at}.limits`);
  }
  // Most containers request their limits.
  let requests = ownRequests ?? limits;
  for (const { resource, amount: limit } of ownRequests ? limits : NO_AMOUNTS) {
    const request = amountIn(requests, resource);
    if (!request) {
      requests = withLast(requests, { resource, amount: limit });
      continue;
    }
    const isWrong = isNeverOvercommitted(resource)
      ? request.nanos !== limit.nanos
      : request.nanos > limit.nanos;
    if (isWrong) {
      const [requested, most] = [amounts.requests, amounts.limits].map(
        (all) => (all as ResourceAmounts)[resource],
      );
      const valid = isNeverOvercommitted(resource) ? 'its limit' : 'at most its limit';
      fail(`${at}.requests.${resource}`, requested, most === undefined ? valid : `${valid} ${display(most)}`);
    }
  }
  const kind = parseKind(container.restartPolicy, `${field}.restartPolicy`, isInit);
  const request = Object.freeze({ name, kind, requests: inUnits(requests, `${at}.requests`) });
  return { container: request, requests, limits };
}

/**
 * Parses a plain pod, or a Kubernetes manifest, whose unknown fields it ignores.
 * @throws ERR_INVALID_POD, which names the field; ERR_INVALID_QUANTITY; ERR_INVALID_OPTION for an
 *   unknown key of a plain pod
 */
export function parsePod(value: unknown): PodRequest {
  const pod = podShape.object(value, 'the pod');
  const isManifest = hasManifestKeys(pod);
  if (isManifest && pod.kind !== 'Pod') fail('kind', pod.kind, '"Pod"');
  if (isManifest && (pod.apiVersion ?? 'v1') !== 'v1') fail('apiVersion', pod.apiVersion, '"v1"');
  const [specField, nameField] = isManifest ? ['spec.', 'metadata.'] : ['', ''];
  const spec = isManifest ? podShape.object(pod.spec, 'spec') : pod;
  const metadata = isManifest ? podShape.object(pod.metadata ?? {}, 'metadata') : pod;
  if (!isManifest) checkOptions(pod, POD_KEYS, 'the pod');

  const misspelt = isManifest && spec.containers === undefined ? misspeltContainers(spec) : undefined;
  if (misspelt !== undefined) fail(`${specField}${misspelt}`, misspelt, 'named containers');
  const init = { field: `${specField}initContainers`, isInit: true, isManifest };
  const others = { field: `${specField}containers`, isInit: false, isManifest };
  const containers = containersIn(
    spec.containers,
    others,
    containersIn(spec.initContainers, init, NO_CONTAINERS),
  );
  const resourcesField = `${specField}resources`;
  if (!isManifest && spec.resources) checkOptions(spec.resources, RESOURCES_KEYS, resourcesField);
  const whole = parsePodAmounts(spec.resources, resourcesField, containers);
  if (whole && isManifest) checkPodAmounts(whole, resourcesField, containers);
  const dra = isManifest ? draOfStatus(pod.status) : draOf(pod.draExtendedResources, containers);
  const ofContainers = qosOfContainers(containers);
  const qosClassOption = isManifest ? undefined : qosOfCaller(pod.qosClass);
  const { qosClass, notGuaranteed } = qosClassOption ?? (whole ? qosOfWhole(whole) : ofContainers);
  return Object.freeze({
    uid: parseName(metadata.uid, `${nameField}uid`),
    name: parseName(metadata.name, `${nameField}name`),
    namespace:
      (isManifest ? parseName(metadata.namespace, 'metadata.namespace') : undefined) ?? DEFAULT_NAMESPACE,
    qosClass,
    notGuaranteed,
    resources: whole ? podResources(whole, resourcesField, containers, ofContainers) : null,
    containers: Object.freeze(containers.map(({ container }) => container)),
    ...(dra && { draExtendedResources: Object.freeze(dra) }),
    ...(isManifest && isMovable(metadata.annotations) && { isMovable: true }),
  });
}

function misspeltContainers(spec: Fields): string | undefined {
  const valid = ['containers', 'initContainers', 'ephemeralContainers'];
  const isMeant = (key: string) =>
    !valid.includes(key) && nearestOf(key.toLowerCase(), valid) === 'containers';
  return Object.keys(spec).find(isMeant);
}

/** The annotation with which a pod consents to a move. */
const MOVABLE_ANNOTATION = 'numalign.io/movable';

function isMovable(annotations: unknown): boolean {
  const field = 'metadata.annotations';
  const value = podShape.object(annotations ?? {}, field)[MOVABLE_ANNOTATION];
  if (value === undefined || value === 'false') return false;
  return value === 'true' || fail(`${field}.${MOVABLE_ANNOTATION}`, value, '"true" or "false"');
}

function draOf(
  value: unknown,
  containers: readonly ParsedContainer[],
): Record<string, readonly string[]> | undefined {
  if (value === undefined || value === null) return undefined;
  const all = podShape.record(value, 'draExtendedResources', (list, at) =>
    podShape.listOf(list, at, podShape.text),
  );
  for (const [name, resources] of Object.entries(all)) {
    const requests = containers.find(({ container }) => container.name === name)?.container.requests;
    const field = `draExtendedResources.${name}`;
    if (!requests) return fail('draExtendedResources', name, 'keyed by the names of containers');
    const stray = resources.find(
      (resource) => !(isExtendedResource(resource) && Object.hasOwn(requests, resource)),
    );
    if (stray !== undefined) fail(field, stray, 'a list of devices that the container asks for');
  }
  return all;
}

// The field where the scheduler records which containers use a claim.
function draOfStatus(status: unknown): Record<string, readonly string[]> | undefined {
  const field = 'status.extendedResourceClaimStatus';
  const claim = podShape.object(status ?? {}, 'status').extendedResourceClaimStatus;
  if (claim === undefined || claim === null) return undefined;
  const { requestMappings } = podShape.object(claim, field);
  // Not an object: a container may have the name of an inherited member.
  const all = new Map<string, readonly string[]>();
  for (const mapping of podShape.listOf(requestMappings ?? [], `${field}.requestMappings`, podShape.object)) {
    const name = podShape.text(mapping.containerName, `${field}.requestMappings.containerName`);
    const resource = podShape.text(mapping.resourceName, `${field}.requestMappings.resourceName`);
    all.set(name, [...(all.get(name) ?? []), resource]);
  }
  return Object.fromEntries(all);
}

const NO_CONTAINERS: readonly ParsedContainer[] = [];
const NO_LIST: readonly unknown[] = [];

// Adds the containers of a list to those before.
function containersIn(
  value: unknown,
  of: ContainerList,
  before: readonly ParsedContainer[],
): readonly ParsedContainer[] {
  const { field, isInit } = of;
  const list = podShape.list(value ?? NO_LIST, field, 'a list of containers');
  if (list.length === 0 && isInit) return before;
  if (list.length === 0) fail(field, value, 'a list of at least one container');
  let containers = before;
  for (let i = 0; i < list.length; i++) {
    const entry = parseContainer(list[i], `${field}[${i}]`, of);
    const { name } = entry.container;
    for (const { container } of containers)
      if (container.name === name) fail(`${field}[${i}].name`, name, 'unique in the pod');
    containers = withLast(containers, entry);
  }
  return containers;
}

/** The request of a container for a resource; 0 without one. */
export function requestOf({ requests }: Pick<ContainerRequest, 'requests'>, resource: string): number {
  return Object.hasOwn(requests, resource) ? requests[resource]! : 0;
}

/**
 * The most of a resource that a pod needs at one time, as Kubernetes counts it: app containers and
 * sidecars together, or an init container and the sidecars started before it, whichever is more.
 */
export function podTotal(
  { containers }: PodRequest,
  amountOf: (container: ContainerRequest) => number,
): number {
  let [starting, sidecars, apps] = [0, 0, 0];
  for (const container of containers) {
    const amount = amountOf(container);
    if (container.kind === 'app') apps += amount;
    else if (container.kind === 'sidecar') sidecars += amount;
    else starting = Math.max(starting, sidecars + amount);
  }
  return Math.max(starting, sidecars + apps);
}

/** The request of a container, or of the pod as a whole, for a resource. */
export function amountFor(
  pod: PodRequest,
  container: ContainerRequest | undefined,
  resource: string,
): number {
  return container ? requestOf(container, resource) : podTotal(pod, (each) => requestOf(each, resource));
}
