// The kubelet's pods and what they hold, in words. Pure.
import { besideText, cpusText, type KubeletHolder, kubeletHolders } from '@numalign/page/words';
import type { KubeletStatus } from 'numalign/kubelet';
import { countText, printable } from '../terminal/text.js';

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
