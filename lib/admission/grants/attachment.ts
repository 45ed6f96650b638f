// Attachment: another process on the CPUs of a grant, or of one of its containers.
import { type Assignments, findPod } from '../../account/assignments.js';
import { cpusNow } from '../../account/cpus-now.js';
import type { PodAssignment } from '../../account/pod-assignment.js';
import { hasParts, runningCpus, SHARED_CONTAINER } from '../../account/pod-holdings.js';
import { sharedPool } from '../../account/pools.js';
import { checkOptions, invalidOption } from '../../base/check-options.js';
import { isNumalignError, NumalignError, reworded } from '../../base/errors.js';
import { GrantGroup } from '../../enforcement/grant-group.js';
import { containerOrAll } from '../../enforcement/layout/layout.js';
import type { ProcessEntry } from '../../enforcement/members/member-entry.js';
import { attachedCpus } from '../../enforcement/members/member-processes.js';
import { type MemoryBinding, memoryBinding, withMemoryRefusals } from '../../enforcement/memory-binding.js';
import { moveProcess } from '../../machine/affinity.js';
import type { CpuSet } from '../../machine/cpu-set.js';
import type { Host } from '../host.js';
import { type EnforcedCommit, transact } from '../transact.js';
import { heldGrant } from './held-grant.js';

/** The result of attaching a process. */
export interface Attachment {
  /** The pid of the process, in the pid namespace of the caller. */
  readonly pid: number;
  /** The CPUs that it may run on now. */
  readonly cpus: CpuSet;
  /** True if no thread can have been missed: a cgroup moved the process as a whole. */
  readonly guaranteed: boolean;
  /** How its cgroup is bound to the booked memory nodes; null if no memory is booked for it. */
  readonly memory: MemoryBinding | null;
}

/** The options of {@link Grant.attach} and of `attach` of a container. */
export interface AttachOptions {
  /**
   * Moves the existing pages of the process to the booked memory nodes too. With cgroup v2 the
   * kernel always does.
   * @default `false`
   */
  readonly migrate?: boolean;
}

/**
 * Moves a process onto the CPUs of a container, or of the whole grant (undefined). A container
 * without exclusive CPUs has the shared pool. The process becomes a shared member that may stay on
 * the grant's CPUs until the grant ends.
 * @throws ERR_CGROUP, ERR_SYSCALL, ERR_UNKNOWN_MEMBER, ERR_MEMBER_UNMOVABLE, ERR_INVALID_OPTION,
 *   ERR_UNKNOWN_GRANT, ERR_OWNER_ALIVE, the ledger's errors
 */
export function attachProcess(
  host: Host,
  { grant, container }: { readonly grant: PodAssignment; readonly container?: string },
  pid: number,
  options: AttachOptions,
): Promise<Attachment> {
  if (!Number.isInteger(pid) || pid <= 0 || pid === process.pid) {
    invalidOption('pid', pid, 'the pid of another process; pin() pins this one');
  }
  const { migrate = false } = checkOptions(options, ['migrate'], 'attach') as AttachOptions;
  if (typeof migrate !== 'boolean') invalidOption('migrate', migrate, 'true or false');
  return transact(host, undefined, async (state, commit) => {
    if (commit.refusal) throw commit.refusal;
    const pod = openGrant(grant.uid, () => heldGrant(host, state, grant));
    const place = container ?? (hasParts(pod) ? SHARED_CONTAINER : undefined);
    const cpus =
      place === undefined ? runningCpus(pod) : pod.containers.find(({ name }) => name === place)!.cpus;
    const group = cpus.isEmpty ? undefined : GrantGroup.of(host, state.settings, pod, container);
    const result = registerAndMove(host, state, { pid, grant: pod.uid, container: place ?? null }, () => {
      if (cpus.isEmpty) {
        host.enforcer.share(pid, state, { leavesGrants: true });
        host.enforcer.apply(state);
        return { pid, cpus: sharedPool(state, cpusNow(host.topology)), guaranteed: false };
      }
      if (group) group.attach(pid, migrate);
      else {
        // Records the mask that the process has, to restore it later.
        host.enforcer.apply(state);
        moveByMask(host, pid, cpus);
      }
      return { pid, cpus, guaranteed: group !== undefined };
    });
    const bound = await withBinding(state, pod, group, commit);
    const memory = memoryBinding(bound, containerOrAll(pod, container));
    return Object.freeze({ ...result, memory });
  });
}

// Records why the kernel refused the memory nodes of the group, or removes an outdated record.
async function withBinding(
  state: Assignments,
  pod: PodAssignment,
  group: GrantGroup | undefined,
  commit: EnforcedCommit,
): Promise<PodAssignment> {
  if (!group) return pod;
  const outcome = new Map([[group.container, group.memory.bind() ?? null]]);
  const next = withMemoryRefusals(state, new Map([[pod.uid, outcome]]));
  if (next === state) return pod;
  await commit(next, true);
  return findPod(next, pod.uid)!;
}

/**
 * Returns what `look` returns. If another process owns the grant, the error says that only that
 * process starts others on the CPUs.
 */
export function openGrant<T>(uid: string, look: () => T): T {
  try {
    return look();
  } catch (error) {
    const isHeld = isNumalignError(error, 'ERR_OWNER_ALIVE') && error.details.pid !== undefined;
    if (!isHeld) throw error;
    const { pid, command } = error.details;
    const message = `grant ${uid} belongs to process ${pid} (${command}): only that process starts others on its CPUs`;
    throw reworded(error, message, { cause: error });
  }
}

/**
 * @throws ERR_MEMBER_UNMOVABLE if a process is attached to exclusive CPUs: it joins the shared pool
 *   when that grant ends
 */
export function checkNotAttached({ enforcer }: Host, { pods }: Assignments, pid: number): void {
  const entry = enforcer.members?.registry.findProcess(pid);
  const pod = pods.find(({ uid }) => uid === entry?.grant);
  if (!entry || !pod || !attachedCpus(entry, pods)) return;
  const { grant, container } = entry;
  const place = `${pod.name}${container === null ? '' : ` (container ${container})`}`;
  throw new NumalignError(
    'ERR_MEMBER_UNMOVABLE',
    `process ${pid} is attached to ${place}: it goes to the shared pool when that is released; attach it to a container without exclusive CPUs to move it now`,
    { value: pid, grant, container, valid: 'a process that is attached to no exclusive CPUs' },
  );
}

// Registers the process before it moves, so that a crash in between leaves a member. A failed move
// restores the former entry.
function registerAndMove<T>(
  { enforcer }: Host,
  state: Assignments,
  { pid, ...attached }: Pick<ProcessEntry, 'pid' | 'grant' | 'container'>,
  move: () => T,
): T {
  const registry = enforcer.members?.registry;
  const before = registry?.findProcess(pid);
  registry?.addProcess(pid, attached);
  try {
    return move();
  } catch (error) {
    // It may have ended.
    if (registry?.findProcess(pid)) {
      registry.addProcess(pid, before);
      enforcer.apply(state);
      if (!before) registry.removeProcess(pid);
    }
    throw error;
  }
}

function moveByMask({ topology }: Host, pid: number, cpus: CpuSet): void {
  moveProcess(pid, topology.possible.union(topology.cpus).difference(cpus), cpus);
}
