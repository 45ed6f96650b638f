// The resources of a grant in words. Pure.
import { type CpuSet, type GrantInfo, type MemoryBlock, NodeSet, type PodContainer } from 'numalign';
import { formatBytes, printable } from 'numalign/tools';

/** Exclusive CPUs, or `shared pool`. */
export function cpusText(cpus: CpuSet | null): string {
  return cpus === null || cpus.isEmpty ? 'shared pool' : cpus.toString();
}

/** The range of CPUs, to append to them: ` of 2..8`. */
export const elasticText = (elastic: GrantInfo['elastic']) =>
  elastic ? ` of ${elastic.min}..${elastic.max}` : '';

/** CPUs with the booked fraction of the shared pool: `0-1 + 0.5 shared`. */
export const withMixed = (cpus: string, mixed: number) => (mixed > 0 ? `${cpus} + ${mixed} shared` : cpus);

/** The CPUs of a container: exclusive ones, those shared in its pod, or none. */
export function containerCpusText({
  cpus,
  mixed,
  isolation,
}: Pick<PodContainer, 'cpus' | 'mixed' | 'isolation'>): string {
  return isolation === 'pod' ? `${cpusText(cpus)} (shared in the pod)` : withMixed(cpusText(cpus), mixed);
}

/** Memory and hugepages with their NUMA nodes: `1 GiB on 0, 64 MiB hugepages-2Mi on 0-1`. */
export function memoryText(blocks: readonly MemoryBlock[]): string {
  const text = blocks.map(({ nodes, type, bytes }) => {
    const what = type === 'memory' ? '' : ` ${printable(type)}`;
    return `${formatBytes(bytes)}${what} on ${NodeSet.from(nodes)}`;
  });
  return text.join(', ') || 'none';
}

/** Devices by resource: `example.com/gpu gpu0 gpu1, example.com/nic eth0`. */
export function devicesText(devices: PodContainer['devices']): string {
  const text = Object.entries(devices).map(([resource, list]) =>
    [resource, ...list.map(({ id }) => id)].join(' '),
  );
  return printable(text.join(', ')) || 'none';
}

/** The resources besides CPUs; empty for none. */
export function besideText(memory: PodContainer['memory'], devices: PodContainer['devices']): string {
  const blocks = memory.filter(({ bytes }) => bytes > 0);
  const parts = [
    ...(blocks.length > 0 ? [memoryText(blocks)] : []),
    ...(Object.keys(devices).length > 0 ? [devicesText(devices)] : []),
  ];
  return parts.join(', ');
}
