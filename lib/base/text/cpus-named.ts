// CPUs in words.

/** `CPU 3`, `CPUs 0-1`. */
export function cpusNamed(cpus: { readonly size: number; toString(): string }): string {
  return `CPU${cpus.size === 1 ? '' : 's'} ${cpus.size === 0 ? 'none' : cpus.toString()}`;
}
