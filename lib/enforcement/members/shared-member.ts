// SharedMember: what runs in the shared pool, as users see it.
import type { Entry } from './member-entry.js';

/**
 * A process or a cgroup that runs in the shared pool. `command` is the program without arguments,
 * `path` the absolute path of the cgroup's folder.
 */
export type SharedMember =
  | { readonly kind: 'process'; readonly pid: number; readonly command: string }
  | { readonly kind: 'cgroup'; readonly path: string };

/** The member that an entry stands for. */
export function memberOf(entry: Entry): SharedMember {
  return entry.kind === 'process'
    ? { kind: 'process', pid: entry.pid, command: entry.command }
    : { kind: 'cgroup', path: entry.path };
}
