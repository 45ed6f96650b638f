// The kubelet's pods as holders of what grants hold. Pure.
import { CpuSet, type GrantInfo } from 'numalign';
import type { KubeletPod, KubeletStatus } from 'numalign/kubelet';

/** What a pod of the kubelet holds, in the form of a grant. */
export interface KubeletHolder extends Pick<GrantInfo, 'cpus' | 'memory' | 'devices'> {
  /** Such as `default/web of the kubelet`. */
  readonly name: string;
}

function holderOf({ namespace, name, containers }: KubeletPod): KubeletHolder {
  const resources = new Set(containers.flatMap(({ devices }) => Object.keys(devices)));
  const idsOf = (resource: string) => containers.flatMap(({ devices }) => devices[resource] ?? []);
  const devices = [...resources].map((resource) => {
    return [resource, idsOf(resource).map((id) => ({ id, nodes: null }))] as const;
  });
  return {
    name: `${namespace}/${name} of the kubelet`,
    cpus: containers.reduce((all, { cpus }) => all.union(cpus), CpuSet.EMPTY),
    memory: containers.flatMap(({ memory }) => memory),
    devices: Object.fromEntries(devices),
  };
}

/** Each pod of the kubelet. */
export const kubeletHolders = (kubelet: KubeletStatus | null): readonly KubeletHolder[] =>
  kubelet?.pods.map(holderOf) ?? [];
