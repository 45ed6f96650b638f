// The forms in which callers name a pod, and the keys that these have.
import type { QosClass } from './pod-resources.js';
import type { ResourceAmounts } from './resource-amounts.js';

/** The resources of one container. The default of a request is the limit. */
export interface ResourceRequirements {
  /**
   * What the container is promised; by default its limits. Exclusive CPUs need requests that equal
   * the limits of CPU and memory.
   */
  readonly requests?: ResourceAmounts;
  /** What the container may use at most; by default as much as there is. */
  readonly limits?: ResourceAmounts;
}

/**
 * A container of a pod, with `resources` like in Kubernetes, or directly with `requests` and
 * `limits`.
 */
export interface ContainerSpec extends ResourceRequirements {
  /** Unique in the pod: up to 63 lower-case letters, digits and inner hyphens. */
  readonly name: string;
  /** `Always` makes an init container a sidecar, which runs as long as the pod. */
  readonly restartPolicy?: string;
  /** The requests and limits in one object. Refused beside `requests` or `limits`. */
  readonly resources?: ResourceRequirements;
}

/** The containers of a pod. */
export interface PodContainers {
  /** Containers that run one after the other, before `containers`. */
  readonly initContainers?: readonly ContainerSpec[];
  /** At least one. */
  readonly containers: readonly ContainerSpec[];
}

/** A pod without the structure of a manifest. */
export interface PlainPod extends PodContainers {
  /**
   * Identifies the pod on record: 1 to 253 printable characters. By default numalign makes a UUID.
   */
  readonly uid?: string;
  /** A name for people, 1 to 253 printable characters; by default the uid. */
  readonly name?: string;
  /** The resources of the pod as a whole: cpu, memory and hugepages. */
  readonly resources?: ResourceRequirements;
  /**
   * The class that Kubernetes gave the pod, if these fields do not show it.
   * @default computed from the containers
   */
  readonly qosClass?: QosClass;
  /**
   * The resources whose devices a DRA driver provides, by container. In a manifest this is
   * `status.extendedResourceClaimStatus`.
   */
  readonly draExtendedResources?: Readonly<Record<string, readonly string[]>>;
}

/**
 * A Kubernetes manifest of kind Pod, such as a parsed YAML file or a V1Pod. The type is loose,
 * since a manifest has many fields that do not matter here. numalign checks those that do.
 */
export interface PodManifest {
  /** `v1`, which is also the default. */
  readonly apiVersion?: string;
  /** `Pod`; {@link podsOf} takes other kinds. */
  readonly kind?: string;
  /**
   * numalign reads `uid`, `name`, `namespace` (by default `default`) and the annotation
   * `numalign.io/movable`.
   */
  readonly metadata?: object;
  /** numalign reads `containers`, `initContainers` and `resources`, as in a {@link PlainPod}. */
  readonly spec?: object;
  /** numalign reads `extendedResourceClaimStatus`: the devices that a DRA driver gives. */
  readonly status?: object;
}

/** The forms of a pod that callers may pass. */
export type PodSpec = PlainPod | PodManifest;

export const POD_KEYS = [
  'uid',
  'name',
  'initContainers',
  'containers',
  'resources',
  'qosClass',
  'draExtendedResources',
] as const;
const MANIFEST_KEYS = ['apiVersion', 'kind', 'metadata', 'spec'] as const;
export const RESOURCES_KEYS = ['requests', 'limits'] as const;
export const CONTAINER_KEYS = ['name', 'restartPolicy', 'resources', ...RESOURCES_KEYS] as const;

/** True for a manifest, false for a plain pod. */
export const hasManifestKeys = (pod: object): boolean => MANIFEST_KEYS.some((key) => key in pod);

/** The rule of {@link isContainerName} in words. */
export const CONTAINER_NAME = '1 to 63 lower-case letters, digits and inner hyphens';

/** True if Kubernetes accepts the value as the name of a container. */
export function isContainerName(value: unknown): value is string {
  return typeof value === 'string' && /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(value);
}
