// What the kubelet has given out, in words. Pure.
import { cpusNamed } from '../../../base/text/cpus-named.js';
import type { KubeletPod, KubeletStatus } from '../../../entries/kubelet.js';
import { CpuSet } from '../../../index.js';
import { printable } from '../../terminal/text.js';
import { memoryText } from '../resource-text.js';

/** A title, and a line for each pod; no line where nothing is on record. */
export function kubeletSection(kubelet: KubeletStatus | null): [title: string, lines: readonly string[]] {
  if (kubelet === null) return ['', []];
  const { pods, keeper, since, updatedAt } = kubelet;
  const process = `process ${keeper.pid} (${printable(keeper.command ?? '')})`;
  const title = keeper.alive
    ? `the kubelet's, on record by ${process} since ${since}:`
    : `the kubelet's, on record as of ${updatedAt}; nobody keeps it, ${process} has ended:`;
  return [title, pods.length === 0 ? ['nothing'] : pods.map(podText)];
}

function podText({ namespace, name, containers }: KubeletPod): string {
  const cpus = containers.reduce((all, container) => all.union(container.cpus), CpuSet.EMPTY);
  const memory = containers.flatMap((container) => container.memory);
  const devices = containers.flatMap((container) => Object.entries(container.devices));
  const held = [
    ...(cpus.isEmpty ? [] : [cpusNamed(cpus)]),
    ...(memory.length === 0 ? [] : [memoryText(memory)]),
    ...devices.map(([resource, ids]) => `${resource} ${ids.join(', ')}`),
  ];
  return printable(`${namespace}/${name}: ${held.join('; ')}`);
}
