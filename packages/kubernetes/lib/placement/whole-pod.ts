// WholePod: a pod, as the API server has it -> a pod of all its containers for the managers. Pure.
import type { PlainPod, PodManifest, ResourceRequirements } from 'numalign/kubelet';
import { isExtendedResource, parsePod } from 'numalign/tools';
import type { PodSandbox } from '../nri/messages.js';
import { neighbourOf } from './affine-places.js';
import { ANNOTATION_PREFIX } from './annotations.js';
import { askedRequest, type ContainerRequest } from './container-request.js';
import { reportedContainers } from './manifest.js';
import type { Rule } from './rules.js';

/** The manifest of a pod; null if there is none. */
export type FindManifest = (pod: Pick<PodSandbox, 'namespace' | 'name'>) => Promise<PodManifest | null>;

interface ContainerFields {
  readonly name: string;
  readonly restartPolicy?: string;
  readonly resources?: ResourceRequirements;
}

interface Fields {
  readonly metadata?: { readonly uid?: string };
  readonly spec?: {
    readonly containers: readonly ContainerFields[];
    readonly initContainers?: readonly ContainerFields[];
    readonly resources?: ResourceRequirements;
    readonly resourceClaims?: readonly unknown[];
  };
}

// Devices of others are not numalign's to place.
const ownAmounts = (amounts: object = {}) =>
  Object.fromEntries(Object.entries(amounts).filter(([resource]) => !isExtendedResource(resource)));

const ownResources = ({ limits, requests }: ResourceRequirements = {}) => ({
  limits: ownAmounts(limits),
  requests: ownAmounts(requests),
});

/** Whether a pod has ResourceClaims. */
export const usesClaims = (manifest: PodManifest): boolean =>
  ((manifest as Fields).spec?.resourceClaims ?? []).length > 0;

/** The name of a whole pod's grant. */
export const podGrantName = (prefix: string, { namespace, name }: Pick<PodSandbox, 'namespace' | 'name'>) =>
  `${prefix}:${namespace || 'default'}/${name}`;

/** A pod of all its containers, and what those with CPUs of their own ask for alike. */
export interface WholePod {
  readonly pod: PlainPod;
  /** The containers with exclusive CPUs. */
  readonly names: readonly string[];
  readonly request: Pick<ContainerRequest, 'exclusiveCpus' | 'within' | 'placement' | 'quiet' | 'affinity'>;
}

/**
 * Undefined if its containers are to be placed one by one: it is another pod of this name, such as the
 * mirror of a static pod, or it is not Guaranteed.
 * @throws NodeError ERR_INVALID_ANNOTATION; Error if rules or annotations say what cannot be said of a
 *   pod; NumalignError if the manifest cannot be read
 */
export function wholePodOf(
  prefix: string,
  pod: PodSandbox,
  manifest: PodManifest,
  rules: readonly Rule[],
): WholePod | undefined {
  const { metadata, spec } = manifest as Fields;
  if (!spec || metadata?.uid !== pod.uid) return undefined;
  const plain = podWith(prefix, pod, spec, ({ resources }) => ({ resources: ownResources(resources) }));
  if (parsePod(plain).qosClass !== 'Guaranteed') return undefined;
  const asked = reportedContainers(spec as object, pod).map(
    (container) => [container.name, askedRequest(prefix, pod, container, rules)] as const,
  );
  const exclusive = asked.filter(([, { exclusiveCpus }]) => exclusiveCpus > 0);
  const names = exclusive.map(([name]) => name);
  const request = commonRequest(asked.map(([, each]) => each));
  const hasOwn = asked.some(([, { rule }]) => rule) || isAnnotated(pod);
  if (!hasOwn) return { pod: plain, names, request };
  if (spec.resources) notWhole('the pod has resources as a whole, which rules and annotations do not know');
  checkApart(pod, names, request);
  const limitsOf = new Map(
    asked.map(([name, each]) => [name, (each.pod as PlainPod | null)?.containers[0]?.limits ?? {}]),
  );
  const own = podWith(prefix, pod, spec, ({ name }) => ({ limits: limitsOf.get(name)! }));
  return { pod: { ...own, qosClass: 'Guaranteed' }, names, request };
}

const isAnnotated = ({ annotations }: PodSandbox) =>
  Object.keys(annotations).some((key) => key.startsWith(ANNOTATION_PREFIX));

function podWith(
  prefix: string,
  pod: PodSandbox,
  { initContainers = [], containers, resources }: NonNullable<Fields['spec']>,
  amountsOf: (
    container: ContainerFields,
  ) => ResourceRequirements | { readonly resources: ResourceRequirements },
): PlainPod {
  return {
    uid: pod.uid,
    name: podGrantName(prefix, pod),
    initContainers: initContainers.map((container) => ({
      ...{ name: container.name, ...amountsOf(container) },
      ...(container.restartPolicy !== undefined && { restartPolicy: container.restartPolicy }),
    })),
    containers: containers.map((container) => ({ name: container.name, ...amountsOf(container) })),
    ...(resources && { resources: ownResources(resources) }),
  };
}

function notWhole(why: string): never {
  throw new Error(why);
}

const NOTHING: WholePod['request'] = { exclusiveCpus: 0, within: undefined, placement: {} };

/** What a pod can be asked for, which its containers must ask for alike. */
function commonRequest(asked: readonly ContainerRequest[]): WholePod['request'] {
  const asking = asked.filter(({ pod }) => pod !== null);
  const exclusive = asking.filter(({ exclusiveCpus }) => exclusiveCpus > 0);
  const options = [
    ...[asking.map(({ placement }) => placement), exclusive.map(({ within }) => `${within}`)],
    ...[exclusive.map(({ quiet }) => quiet ?? null), exclusive.map(({ affinity = [] }) => affinity)],
  ];
  if (options.some((each) => new Set(each.map((value) => JSON.stringify(value))).size > 1))
    notWhole('rules or annotations ask for different things for its containers');
  const { placement } = asking[0] ?? NOTHING;
  const { within, quiet, affinity = [] } = exclusive[0] ?? NOTHING;
  if (exclusive.length > 1 && quiet?.quiet.housekeeping !== undefined)
    notWhole('each of its containers is to keep CPUs for kernel work');
  const exclusiveCpus = exclusive.reduce((sum, each) => sum + each.exclusiveCpus, 0);
  return { exclusiveCpus, within, placement, quiet, affinity };
}

/** Places near each other, or apart, are found one after the other. */
function checkApart(pod: PodSandbox, names: readonly string[], { affinity = [] }: WholePod['request']): void {
  const own = names.map((name) => neighbourOf(pod, name));
  const concern = affinity.some(({ matches }) =>
    own.some((self) => own.some((other) => other !== self && matches(other, self))),
  );
  if (concern) notWhole('its containers are to be near each other, or apart');
}
