// The processes of a member, and those that no cpuset confines.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { PodAssignment } from '../../account/pod-assignment.js';
import { runningCpus } from '../../account/pod-holdings.js';
import { unlessClosed } from '../../base/errors.js';
import type { NativeConfinement } from '../../base/native-threads.js';
import { childNames, isCgroupFolder } from '../../cgroups/files/cgroup-files.js';
import type { CpuSet } from '../../machine/cpu-set.js';
import { isNamespaceHere, listsAllProcesses } from '../../processes/cgroup-owner.js';
import {
  identifyProcess,
  isProcOurs,
  isUnused,
  type ProcessIdentity,
  pidNamespace,
} from '../../processes/process-identity.js';
import { DAMAGED, isExplicit, type ProcessEntry, type Registered } from './member-entry.js';
import { mayVouch } from './member-file.js';
import { memberOf, type SharedMember } from './shared-member.js';

const OTHER_NAMESPACES =
  'cgroup v1 does not list its processes of other pid namespaces: register its processes, or a cgroup below cgroupRoot';
const FOREIGN_PROC = '/proc shows another pid namespace';

// Processes of registered cgroups have no registration.
export type Process = ProcessIdentity & Partial<Pick<ProcessEntry, 'grant' | 'container' | 'pinned'>>;

export const isDone = ({ moved, stuck }: NativeConfinement) => moved === 0 && stuck.length === 0;

/** The CPUs that a process was attached to; undefined if they are no longer granted. */
export function attachedCpus(
  { grant, container }: Process,
  pods: readonly PodAssignment[],
): CpuSet | undefined {
  const pod = grant ? pods.find(({ uid }) => uid === grant) : undefined;
  if (!pod) return undefined;
  const cpus = container ? pod.containers.find(({ name }) => name === container)?.cpus : runningCpus(pod);
  return cpus?.isEmpty ? undefined : cpus;
}

interface Unconfined {
  readonly member: SharedMember;
  readonly names: readonly string[];
  readonly process?: Process;
  /** Why this process cannot move the member's processes. */
  readonly reason?: string;
}

/** The processes of members that no cpuset keeps off already, each once. */
export function* unconfined(
  all: readonly Registered[],
  isConfined: (member: SharedMember) => boolean,
): Generator<Unconfined> {
  const visitedPids = new Set<number>();
  for (const registered of all) {
    const { names, entry } = registered;
    const member = memberOf(entry);
    // The cpuset of a member that cannot be seen is unknown.
    if (registered.isSeen && isConfined(member)) continue;
    const processes = processesOf(registered);
    if (typeof processes === 'string') {
      yield { member, names, reason: processes };
      continue;
    }
    for (const process of processes) {
      if (visitedPids.has(process.pid)) continue;
      visitedPids.add(process.pid);
      yield { member, names, process };
    }
  }
}

// Why this process cannot move a member that exists, in words.
function whyUnseen({ entry, names }: Registered): string {
  if (entry.kind === 'process') {
    if (entry.namespace === pidNamespace()) return '/proc hides it';
    const [name] = names.every(isExplicit) ? names : [];
    return `it lives in another pid namespace${name === undefined ? '' : `: if it has ended, remove members/${name}`}`;
  }
  if (entry.namespace === DAMAGED)
    return 'its registration in members/ is damaged: remove it, and register the cgroup again';
  if (!isNamespaceHere(entry.namespace, entry.path)) return 'its path belongs to another cgroup namespace';
  return 'it cannot be seen from here';
}

/** The processes of a member; in words why this process cannot move them. */
export function processesOf(registered: Registered): readonly ProcessIdentity[] | string {
  const { entry, user, doubt, isSeen } = registered;
  if (!isSeen) return whyUnseen(registered);
  if (!isProcOurs()) return FOREIGN_PROC;
  if (doubt !== undefined) return doubt;
  if (entry.kind === 'process') return [entry];
  if (!listsAllProcesses(entry.path)) return OTHER_NAMESPACES;
  const found: ProcessIdentity[] = [];
  for (const pid of processesIn(entry.path)) {
    const process = identifyProcess(pid);
    if (process && mayVouch(user, pid)) found.push(process);
    // cgroups(7): 0 stands for a process of another pid namespace.
    if (!process && (pid === 0 || !isUnused(pid))) return `/proc hides process ${pid} in it`;
  }
  return found;
}

/** The processes of a cgroup and of the cgroups below it. */
export function processesIn(path: string): number[] {
  // None: the cgroup was removed in the meantime.
  return unlessClosed(() => {
    // Elsewhere anyone could list any process.
    if (!isCgroupFolder(path)) return [];
    const pids = readFileSync(join(path, 'cgroup.procs'), 'latin1').split('\n').filter(Boolean).map(Number);
    return [...pids, ...childNames(path).flatMap((name) => processesIn(join(path, name)))];
  }, []);
}
