// CountedPods: which pods of a node belong to its fingerprint. Pure.
import type { KubernetesObject } from '../api-server/resource.js';
import { hashOfPod } from './pod-fingerprint.js';

/** What is kept of a pod. */
export interface CountedPod {
  readonly hash: bigint;
  readonly isRunning: boolean;
  /** It is to run, and may have exclusive CPUs or memory. */
  readonly isExclusive: boolean;
  /** The extended resources that it is to have. */
  readonly devices: readonly string[];
}

interface ContainerObject {
  readonly resources?: { readonly requests?: Readonly<Record<string, string>> };
  readonly restartPolicy?: string;
}

interface PodObject {
  readonly metadata: { readonly namespace?: string; readonly name: string };
  readonly spec?: {
    readonly containers?: readonly ContainerObject[];
    readonly initContainers?: readonly ContainerObject[];
  };
  readonly status?: { readonly phase?: string; readonly qosClass?: string };
}

/** A Pod as the API server shows it. */
export function countedPod(object: KubernetesObject): CountedPod {
  const { metadata, spec, status } = object as PodObject;
  const { phase = 'Pending', qosClass } = status ?? {};
  const isPending = phase === 'Pending';
  const sidecars = (spec?.initContainers ?? []).filter(({ restartPolicy }) => restartPolicy === 'Always');
  const names = [...sidecars, ...(spec?.containers ?? [])].flatMap(({ resources }) =>
    Object.keys(resources?.requests ?? {}),
  );
  return {
    hash: hashOfPod(metadata.namespace ?? '', metadata.name),
    isRunning: phase === 'Running',
    // Each such pod asks for memory, which NodeResourceTopologyMatch takes for exclusive.
    isExclusive: isPending && qosClass === 'Guaranteed',
    devices: isPending ? names.filter((name) => name.includes('/')) : [],
  };
}

/**
 * A scheduler counts the pods that run. One that is bound, does not run yet, and asks for exclusive
 * resources counts here, too, so that the fingerprints differ until it runs: the scheduler then
 * keeps what it has reserved for it, which no zone shows yet.
 */
export const isCounted = (pod: CountedPod, zoneResources: ReadonlySet<string>): boolean =>
  pod.isRunning || pod.isExclusive || pod.devices.some((name) => zoneResources.has(name));
