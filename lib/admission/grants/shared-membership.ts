// SharedMembership: registers shared members besides this process, and moves them.
import { isAbsolute, join } from 'node:path';
import { checkOptions, invalidOption } from '../../base/check-options.js';
import { NumalignError } from '../../base/errors.js';
import { readIfThere } from '../../cgroups/files/cgroup-files.js';
import { findHierarchy } from '../../cgroups/files/hierarchies.js';
import { isAtOrBelow } from '../../cgroups/files/mounts.js';
import { SHARED } from '../../enforcement/layout/layout.js';
import { stuckText } from '../../enforcement/members/confinement.js';
import type { Host } from '../host.js';
import { transact } from '../transact.js';
import { checkNotAttached } from './attachment.js';

/** A process by its pid, or a cgroup by the absolute path of its folder. */
export type SharedMemberTarget = { readonly pid: number } | { readonly cgroup: string };

function parseMember(target: SharedMemberTarget): { pid?: number; cgroup?: string } {
  const { pid, cgroup } = checkOptions(target, ['pid', 'cgroup'], 'a shared member') as {
    pid?: unknown;
    cgroup?: unknown;
  };
  if ((pid === undefined) === (cgroup === undefined))
    invalidOption('a shared member', target, '{ pid } or { cgroup }');
  if (typeof pid === 'number' && Number.isInteger(pid) && pid > 0) return { pid };
  if (typeof cgroup === 'string' && isAbsolute(cgroup)) return { cgroup };
  return invalidOption(
    'a shared member',
    pid ?? cgroup,
    'the pid of a process, or the absolute path of a cgroup',
  );
}

/** @throws as {@link Manager.addSharedMember} */
export async function addSharedMember(host: Host, target: SharedMemberTarget): Promise<void> {
  const { members, enforcer } = membership(host);
  const { pid, cgroup } = parseMember(target);
  await transact(host, undefined, async (state) => {
    if (pid !== undefined) checkNotAttached(host, state, pid);
    const { registry } = members;
    const { name, isNew } = cgroup === undefined ? registry.addProcess(pid!) : registry.addCgroup(cgroup);
    if (pid !== undefined) enforcer.share(pid, state);
    const { failed, stuck } = enforcer.apply(state);
    // Other stuck members are no reason to refuse this one.
    const stuckMember = stuck.find(({ names }) => names.includes(name));
    const why = stuckMember ? stuckText(stuckMember) : failed[0];
    if (why === undefined) return;
    if (isNew && cgroup !== undefined) registry.removeCgroup(cgroup);
    if (isNew && pid !== undefined) registry.removeProcess(pid);
    throw new NumalignError('ERR_MEMBER_UNMOVABLE', why, {
      value: target,
      valid: 'a process or cgroup that can leave granted CPUs',
    });
  });
}

/** @throws as {@link Manager.removeSharedMember} */
export async function removeSharedMember(
  host: Host,
  target: SharedMemberTarget,
): Promise<SharedGroup | null> {
  const { members, enforcer } = membership(host);
  const { pid, cgroup } = parseMember(target);
  return transact(host, undefined, async (state) => {
    if (cgroup !== undefined) members.registry.removeCgroup(cgroup);
    if (pid === undefined) return null;
    const wasAttached = typeof members.registry.findProcess(pid)?.grant === 'string';
    members.registry.removeProcess(pid);
    const isMember = members.list().some((member) => member.kind === 'process' && member.pid === pid);
    if (isMember) return null;
    if (!wasAttached) enforcer.unshare(pid, state);
    return sharedGroupOf(pid, state.settings.cgroupRoot);
  });
}

function membership({ enforcer }: Host) {
  const { members } = enforcer;
  if (members) return { members, enforcer };
  throw new NumalignError('ERR_SIMULATED_MACHINE', 'no process runs on a simulated machine');
}

/** The shared cgroup of a process that numalign could not put back where it came from. */
export interface SharedGroup {
  /** The path of the cgroup, below the root of its hierarchy. */
  readonly path: string;
  /** The file that takes the process out to the root if you write its pid there. */
  readonly exit: string;
}

/** null if the process is in another cgroup. */
function sharedGroupOf(pid: number, root: string | null): SharedGroup | null {
  const path = readIfThere(`/proc/${pid}/cpuset`)?.trim();
  if (path === undefined || root === null || !isAtOrBelow(path, join(root, SHARED))) return null;
  const top = findHierarchy('cpuset')?.mount.point;
  return top === undefined ? null : { path, exit: join(top, 'cgroup.procs') };
}
