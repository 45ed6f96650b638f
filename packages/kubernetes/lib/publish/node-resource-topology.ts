// NodeResourceTopology: the custom resource of topology.node.k8s.io, which tells a cluster's
// scheduler what each NUMA node of a machine has.
import type { ManagerOptions } from 'numalign';
import { FINGERPRINT_ANNOTATION, fingerprintAttributes } from './pod-fingerprint.js';

export const GROUP = 'topology.node.k8s.io';
export const VERSION = 'v1alpha2';
export const KIND = 'NodeResourceTopology';
export const PLURAL = 'noderesourcetopologies';

/** Amounts are Kubernetes quantities: CPUs, bytes, devices. */
export interface ResourceInfo {
  readonly name: string;
  readonly capacity: string;
  readonly allocatable: string;
  readonly available: string;
}

export interface CostInfo {
  readonly name: string;
  readonly value: number;
}

export interface AttributeInfo {
  readonly name: string;
  readonly value: string;
}

/** A NUMA node. */
export interface Zone {
  /** `node-` and the NUMA node's id, as the scheduler's plugin expects. */
  readonly name: string;
  readonly type: 'Node';
  /** Distances; left out if the firmware reports none. */
  readonly costs?: readonly CostInfo[];
  readonly resources: readonly ResourceInfo[];
}

export interface OwnerReference {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
}

/** What this package publishes about a machine; the API server keeps the rest of the object. */
export interface NodeResourceTopology {
  readonly apiVersion: `${typeof GROUP}/${typeof VERSION}`;
  readonly kind: typeof KIND;
  readonly metadata: {
    readonly name: string;
    readonly ownerReferences?: readonly OwnerReference[];
    readonly annotations?: Readonly<Record<string, string>>;
  };
  /** Deprecated by the API, but still read by older schedulers. */
  readonly topologyPolicies: readonly string[];
  readonly attributes: readonly AttributeInfo[];
  readonly zones: readonly Zone[];
}

export type Policy = NonNullable<ManagerOptions['policy']>;
export type Scope = NonNullable<ManagerOptions['scope']>;

const POLICY_NAMES: Readonly<Record<Policy, string>> = {
  none: 'None',
  'best-effort': 'BestEffort',
  restricted: 'Restricted',
  'single-numa-node': 'SingleNUMANode',
};
const SCOPE_NAMES: Readonly<Record<Scope, string>> = { container: 'ContainerLevel', pod: 'PodLevel' };

/** The name of a policy and scope in the deprecated list. */
export function policyName(policy: Policy, scope: Scope): string {
  return policy === 'none' ? POLICY_NAMES.none : `${POLICY_NAMES[policy]}${SCOPE_NAMES[scope]}`;
}

// The kubelet's default.
const DEFAULT_MAX_NODES = 8;
// Schedulers use no larger number.
const MOST_NODES = 1024;

/**
 * The Topology Manager's settings, under the kubelet's names, except that of the limit of NUMA
 * nodes: schedulers read it as topologyManagerMaxNUMANodes.
 */
function settingsOf(
  { policy, scope, maxNodes }: TopologySettings,
  zones: readonly Zone[],
): readonly AttributeInfo[] {
  const limit = Number.isFinite(maxNodes) ? maxNodes : Math.max(DEFAULT_MAX_NODES, zones.length);
  return [
    { name: 'topologyManagerPolicy', value: policy },
    { name: 'topologyManagerScope', value: scope },
    { name: 'topologyManagerMaxNUMANodes', value: String(Math.min(limit, MOST_NODES)) },
  ];
}

export interface TopologySettings {
  readonly policy: Policy;
  readonly scope: Scope;
  /** The most NUMA nodes that the policy allows a machine. */
  readonly maxNodes: number;
}

/** The object of a node. */
export function nodeResourceTopology(
  name: string,
  settings: TopologySettings,
  zones: readonly Zone[],
  fingerprint?: string,
): NodeResourceTopology {
  return {
    apiVersion: `${GROUP}/${VERSION}`,
    kind: KIND,
    metadata: {
      name,
      ...(fingerprint !== undefined && { annotations: { [FINGERPRINT_ANNOTATION]: fingerprint } }),
    },
    topologyPolicies: [policyName(settings.policy, settings.scope)],
    attributes: [
      ...settingsOf(settings, zones),
      ...(fingerprint === undefined ? [] : fingerprintAttributes(fingerprint)),
    ],
    zones,
  };
}
