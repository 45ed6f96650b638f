// CPUs and NUMA nodes in messages.

/** Names CPUs as messages do: `CPU 3`, `CPUs 0-1`. */
export function cpusNamed(cpus: { readonly size: number; toString(): string }): string {
  return `CPU${cpus.size === 1 ? '' : 's'} ${cpus.size === 0 ? 'none' : cpus.toString()}`;
}

/** Names NUMA nodes as messages do: `NUMA node 3`, `NUMA nodes 0-1`. */
export function nodesNamed(nodes: { readonly size: number; toString(): string }): string {
  return `NUMA node${nodes.size === 1 ? '' : 's'} ${nodes.size === 0 ? 'none' : nodes.toString()}`;
}
