// SlicePaths: the cgroups that a kubelet has made for the pods of each QoS class. Pure.
import { posix } from 'node:path';

// Also below the cgroup of the kubelet's --cgroup-root, such as /kubelet.slice/kubelet-kubepods.slice.
const ALL_PODS = /(^|-)kubepods(\.slice)?$/;
const CLASS = /(^|-)(burstable|besteffort)(\.slice)?$/;

/** Where kubelets have them, with the drivers cgroupfs and systemd. */
export const USUAL_SLICES = ['/kubepods', '/kubepods.slice'] as const;

/** The classes below the cgroup of all pods; a Guaranteed pod is in that itself. */
export const classSlices = (allPods: string): string[] =>
  ['burstable', 'besteffort'].map((name) =>
    allPods.endsWith('.slice')
      ? posix.join(allPods, `${posix.basename(allPods).replace(/\.slice$/, '')}-${name}.slice`)
      : posix.join(allPods, name),
  );

/** The slices that a cgroup is in, the outermost first: of all pods, and of its class. */
export function slicesAbove(path: string): string[] {
  const parts = path.split('/');
  const at = parts.findIndex((part) => ALL_PODS.test(part));
  if (at < 0) return [];
  const allPods = parts.slice(0, at + 1).join('/');
  const next = parts[at + 1];
  return next !== undefined && CLASS.test(next) ? [allPods, `${allPods}/${next}`] : [allPods];
}
