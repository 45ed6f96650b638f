// MemoryBinding: the memory nodes that cgroups of a grant are bound to now. Reads cgroup files and
// changes nothing.
import { dirname, join } from 'node:path';
import { type Assignments, findPod } from '../account/assignments.js';
import type { MemoryRefusals, PodAssignment } from '../account/pod-assignment.js';
import { replacePod } from '../account/pod-changes.js';
import { type NumalignError, refusalOf, unless } from '../base/errors.js';
import { cgroupReason } from '../cgroups/files/cgroup-error.js';
import { encodeName } from '../cgroups/files/cgroup-path.js';
import { type MemoryNodes, readMemoryNodes } from '../cgroups/files/memory-nodes.js';
import type { NodeSet } from '../machine/cpu-set.js';
import { ALL_CONTAINERS, groupName, memoryNodesOf } from './layout/layout.js';

/** The memory nodes that the cgroup of a container is bound to, see docs/memory.md. */
export interface MemoryBinding {
  /** The container; null: processes that are attached to all containers of a pod. */
  readonly container: string | null;
  /** The path of the cgroup; null without one. */
  readonly cgroup: string | null;
  /** The nodes of the booked memory. */
  readonly wanted: NodeSet;
  /** The nodes that the kernel allows now; null if they cannot be read. */
  readonly nodes: NodeSet | null;
  /** Whether `nodes` are the wanted ones. */
  readonly applied: boolean;
  /**
   * Why they are not: `no-cgroup`; `not-made`, nothing has run in the cgroup yet; `outside-parent`
   * or `clipped`, the parent cgroup has none or not all of the nodes; a refusal of the kernel, such
   * as `EACCES`; `changed`, another program wrote other nodes, until the next round of reconciling.
   */
  readonly reason: string | null;
  /**
   * Whether existing pages move to the nodes, of new processes and when the nodes change; null if
   * that cannot be read.
   */
  readonly migrates: boolean | null;
}

/**
 * The bindings of all containers with booked memory, and of ALL_CONTAINERS if that group exists.
 */
export function memoryBindings(pod: PodAssignment): readonly MemoryBinding[] {
  const perContainer = pod.containers.map(({ name }) => memoryBinding(pod, name));
  const all = pod.containers.length > 1 ? memoryBinding(pod, ALL_CONTAINERS) : null;
  const bindings = perContainer.filter((binding) => binding !== null);
  return Object.freeze(all?.nodes ? [...bindings, all] : bindings);
}

/** `container`: a name, or ALL_CONTAINERS. Null if no memory is booked for it. */
export function memoryBinding(pod: PodAssignment, container: string): MemoryBinding | null {
  const nodes = memoryNodesOf(pod, container);
  if (nodes.isEmpty) return null;
  const cgroup = folderOf(pod, container);
  const found = cgroup === null ? undefined : unlessHidden(() => readMemoryNodes(cgroup));
  const applied = found?.effective.equals(nodes) ?? false;
  return Object.freeze({
    container: container === ALL_CONTAINERS ? null : container,
    cgroup,
    wanted: nodes,
    nodes: found?.effective ?? null,
    applied,
    migrates: found?.migrates ?? null,
    reason: applied ? null : whyNot(pod, container, cgroup, found),
  });
}

function folderOf(
  { uid, containers, enforcement: { target } }: PodAssignment,
  container: string,
): string | null {
  const isPooled = containers.every(
    ({ name, cpus }) => cpus.isEmpty || ![name, ALL_CONTAINERS].includes(container),
  );
  return target === null || isPooled ? null : join(dirname(target), encodeName(groupName(uid, container)));
}

function whyNot(
  pod: PodAssignment,
  container: string,
  cgroup: string | null,
  found: MemoryNodes | undefined,
): string {
  if (cgroup === null) return 'no-cgroup';
  if (!found) return 'not-made';
  const wanted = memoryNodesOf(pod, container);
  const parentNodes = unlessHidden(() => readMemoryNodes(dirname(cgroup)))?.effective.intersection(wanted);
  if (parentNodes?.isEmpty) return 'outside-parent';
  const refusal = refusalIn(pod.enforcement.memory, container);
  if (refusal !== undefined) return refusal;
  return parentNodes?.equals(found.effective) ? 'clipped' : 'changed';
}

// This user may not be allowed to read a cgroup's files.
const unlessHidden = <T>(look: () => T): T | undefined =>
  unless((error) => (error as NodeJS.ErrnoException).code !== undefined, look);

/** Why a group cannot have memory nodes, in a word; undefined if it can. */
export function whyUnbound(bind: () => void): string | undefined {
  const refusal = refusalOf(bind);
  return refusal && refusalName(refusal);
}

/** The errno's name, or the reason of an ERR_CGROUP. */
export const refusalName = (error: NumalignError): string =>
  error.errnoName ?? cgroupReason(error) ?? error.code;

/** What the kernel refused, by grant uid and container; null if it was done. */
export type BindingOutcomes = ReadonlyMap<string, ReadonlyMap<string, string | null>>;

/** The state with the reasons why memory nodes were refused; the same object if nothing changes. */
export function withMemoryRefusals(state: Assignments, outcomes: BindingOutcomes): Assignments {
  let next = state;
  // Most commits bind nothing, so only the grants in `outcomes` are looked at.
  for (const [uid, refusals] of outcomes) {
    const pod = findPod(next, uid);
    const memory = pod && refusalsAfter(pod.enforcement.memory ?? {}, refusals);
    if (!memory) continue;
    const isNone = Object.keys(memory).length === 0;
    const enforcement = { ...pod.enforcement, memory: isNone ? undefined : memory };
    next = replacePod(next, { ...pod, enforcement });
  }
  return next;
}

// A container may have the name of an inherited property, such as `constructor`.
function refusalIn(refusals: MemoryRefusals | undefined, container: string): string | undefined {
  return refusals && Object.hasOwn(refusals, container) ? refusals[container] : undefined;
}

// Undefined if nothing changes.
function refusalsAfter(
  before: MemoryRefusals,
  outcomes: ReadonlyMap<string, string | null>,
): MemoryRefusals | undefined {
  const changes = [...outcomes].filter(([name, reason]) => refusalIn(before, name) !== (reason ?? undefined));
  if (changes.length === 0) return undefined;
  const next = new Map([...Object.entries(before), ...changes]);
  return Object.fromEntries([...next].filter((entry): entry is [string, string] => entry[1] !== null));
}
