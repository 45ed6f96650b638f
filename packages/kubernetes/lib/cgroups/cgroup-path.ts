// The path of a container's cgroup, as runtimes write it in an OCI specification. Pure.
import { posix } from 'node:path';

// systemd.slice(5): the name of a slice has the names of all slices above it.
function slicePath(slice: string): string {
  if (slice === '-.slice' || slice === '') return '/';
  const names = slice.replace(/\.slice$/, '').split('-');
  return names.map((_, i) => `${names.slice(0, i + 1).join('-')}.slice`).join('/');
}

/**
 * The path below the root of a hierarchy: of `slice:prefix:name`, as a runtime with systemd's driver
 * has it, the scope in its slices; any other is the path itself.
 */
export function cgroupPath(cgroupsPath: string): string {
  const [slice, prefix, name, ...rest] = cgroupsPath.split(':');
  const isScope = slice !== undefined && prefix !== undefined && name !== undefined && rest.length === 0;
  if (!isScope || cgroupsPath.startsWith('/')) return posix.join('/', cgroupsPath);
  const unit = name.endsWith('.slice') ? name : prefix === '' ? `${name}.scope` : `${prefix}-${name}.scope`;
  return posix.join('/', slicePath(slice), unit);
}
