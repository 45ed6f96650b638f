// The kubelet's pods and what they hold, in words. Pure.
import { CpuSet, type GrantInfo } from 'numalign';
import type { KubeletPod, KubeletStatus } from 'numalign/kubelet';
import { countText, printable } from '../terminal/text.js';
import { besideText, cpusText } from './resource-text.js';

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

/** A title and a line for each pod; empty without a record. */
export function kubeletSection(kubelet: KubeletStatus | null): [title: string, lines: readonly string[]] {
  if (kubelet === null) return ['', []];
  const { pods, keeper, since, updatedAt } = kubelet;
  const process = `process ${keeper.pid} (${printable(keeper.command ?? '')})`;
  const what = `the kubelet's, ${countText(pods.length, 'pod')}`;
  const title = keeper.alive
    ? `${what}, kept on record by ${process} since ${since}:`
    : `${what}, on record since ${updatedAt}; ${process}, which kept it, has ended:`;
  return [title, pods.length === 0 ? ['nothing'] : kubeletHolders(kubelet).map(holderText)];
}

function holderText({ name, cpus, memory, devices }: KubeletHolder): string {
  const otherText = besideText(memory, devices);
  const parts = [
    ...(cpus.isEmpty ? [] : [`CPUs ${cpusText(cpus)}`]),
    ...(otherText === '' ? [] : [otherText]),
  ];
  return printable(`${name}: ${parts.join(', ')}`);
}
