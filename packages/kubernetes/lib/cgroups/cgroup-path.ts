// CgroupPath: the paths of containers' cgroups, in the forms of runtimes.
import { posix } from 'node:path';

/**
 * The path, within its hierarchy, of the cgroup in `linux.cgroupsPath` of an OCI specification.
 * That is a path, or systemd's `SLICE:PREFIX:NAME`: the scope `PREFIX-NAME` below the slice. Each
 * part of a slice's name is a slice above it (systemd.slice(5)). The result begins with / and never
 * leads above it.
 */
export function cgroupPath(cgroupsPath: string): string {
  if (!isOfSystemd(cgroupsPath)) return posix.join('/', cgroupsPath);
  const [slice, prefix, name] = cgroupsPath.split(':') as [string, string, string];
  const scope = name.endsWith('.slice') ? name : `${prefix === '' ? name : `${prefix}-${name}`}.scope`;
  return posix.join('/', slicePath(slice === '' ? 'system.slice' : slice), scope);
}

/** Whether systemd has made the cgroup: it writes what it knows of it again, such as at a reload. */
export const isOfSystemd = (cgroupsPath: string): boolean =>
  cgroupsPath.split(':').length === 3 && !cgroupsPath.startsWith('/');

function slicePath(slice: string): string {
  if (slice === '-.slice') return '';
  const words = slice.replace(/\.slice$/, '').split('-');
  return words.map((_, i) => `/${words.slice(0, i + 1).join('-')}.slice`).join('');
}

/**
 * Whether a container's cgroup is in one that a kubelet has made for this pod, such as
 * `/kubepods/podUID` or `kubepods-podUID.slice`. No other pod is in there.
 */
export function isInPod(cgroupsPath: string, podUid: string): boolean {
  const name = posix.basename(posix.dirname(cgroupPath(cgroupsPath))).replace(/\.slice$/, '');
  // Systemd's names have a meaning for `-`.
  return podUid !== '' && [podUid, podUid.replaceAll('-', '_')].some((uid) => name.endsWith(`pod${uid}`));
}

/**
 * Whether a cgroup's path is, or is below, that of the container with this id. One of its parts is
 * the id, or a scope with the id such as `cri-containerd-ID.scope`. The scope of CRI-O's monitor is
 * not the container's.
 */
export function isOfContainer(path: string, id: string): boolean {
  return path.split('/').some((part) => {
    const name = part.replace(/\.scope$/, '');
    if (name === id) return true;
    return name.endsWith(`-${id}`) && !name.slice(0, -id.length).includes('conmon');
  });
}
