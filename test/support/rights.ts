// The rights of this process, each tried once: root in a container often lacks some.
import { spawnSync } from 'node:child_process';

const succeeds = (command: string, ...args: string[]) => spawnSync(command, args).status === 0;
const isRoot = process.getuid?.() === 0;

/** A mount for all, not in a namespace: tried in one, which takes the same right. */
export const canMount = isRoot && succeeds('unshare', '-m', 'mount', '-t', 'tmpfs', 'tmpfs', '/tmp');

/** Namespaces of mounts, processes and cgroups. */
export const canUnshare = isRoot && succeeds('unshare', '-pmCf', '--mount-proc', 'true');

/** Going before others: a niceness below zero. */
export const canNice = isRoot && succeeds('sh', '-c', 'test "$(nice -n -7 nice)" -lt 0');
