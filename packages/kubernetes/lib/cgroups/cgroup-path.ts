// The paths of containers' cgroups, as runtimes write them.
import { posix } from 'node:path';

/**
 * The cgroup's path in its hierarchy of what an OCI specification has in `linux.cgroupsPath`:
 * already a path, or systemd's `SLICE:PREFIX:NAME`, which is the scope `PREFIX-NAME` below the
 * slice; of a slice each part of its name is a slice above it (systemd.slice(5)). It begins with /,
 * and leads nowhere above it.
 */
export function cgroupPath(cgroupsPath: string): string {
  const parts = cgroupsPath.split(':');
  if (parts.length !== 3 || cgroupsPath.startsWith('/')) return posix.join('/', cgroupsPath);
  const [slice, prefix, name] = parts as [string, string, string];
  const scope = name.endsWith('.slice') ? name : `${prefix === '' ? name : `${prefix}-${name}`}.scope`;
  return posix.join('/', slicePath(slice === '' ? 'system.slice' : slice), scope);
}

function slicePath(slice: string): string {
  if (slice === '-.slice') return '';
  const words = slice.replace(/\.slice$/, '').split('-');
  return words.map((_, i) => `/${words.slice(0, i + 1).join('-')}.slice`).join('');
}

/**
 * Whether a cgroup's path is, or is below, that of the container with this id: a part of it is the
 * id, or a scope of it, such as `cri-containerd-ID.scope`. The scope of CRI-O's monitor is not the
 * container's.
 */
export function isOfContainer(path: string, id: string): boolean {
  return path.split('/').some((part) => {
    const name = part.replace(/\.scope$/, '');
    if (name === id) return true;
    return name.endsWith(`-${id}`) && !name.slice(0, -id.length).includes('conmon');
  });
}
