// WholePod: a pod, as the API server has it -> a pod of all its containers for the managers. Pure.
import type { PlainPod, PodManifest, ResourceRequirements } from 'numalign/kubelet';
import { isExtendedResource, parsePod } from 'numalign/tools';
import type { PodSandbox } from '../nri/messages.js';
import { ANNOTATION_PREFIX } from './annotations.js';

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

/**
 * Undefined if its containers are to be placed one by one: it is another pod of this name, such as the
 * mirror of a static pod; it is not Guaranteed; or annotations say what single containers get.
 * @throws NumalignError if the manifest cannot be read
 */
export function wholePodOf(prefix: string, pod: PodSandbox, manifest: PodManifest): PlainPod | undefined {
  const { metadata, spec } = manifest as Fields;
  if (!spec || metadata?.uid !== pod.uid) return undefined;
  if (Object.keys(pod.annotations).some((key) => key.startsWith(ANNOTATION_PREFIX))) return undefined;
  const whole = {
    uid: pod.uid,
    name: podGrantName(prefix, pod),
    initContainers: (spec.initContainers ?? []).map(({ name, restartPolicy, resources }) => ({
      ...{ name, resources: ownResources(resources) },
      ...(restartPolicy !== undefined && { restartPolicy }),
    })),
    containers: spec.containers.map(({ name, resources }) => ({ name, resources: ownResources(resources) })),
    ...(spec.resources && { resources: ownResources(spec.resources) }),
  };
  return parsePod(whole).qosClass === 'Guaranteed' ? whole : undefined;
}
