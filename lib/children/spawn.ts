// Programs that are started on the CPUs of a grant.
import { type ChildProcess, type SpawnOptions, type StdioOptions, spawn } from 'node:child_process';
import { NumalignError } from '../base/errors.js';
import { bornOn } from '../births/birth.js';
import type { NodeSet } from '../machine/cpu-set.js';
import type { GrantedThreads } from '../threads/granted-threads.js';
import { preferNodes } from '../threads/memory.js';
import type { ChildVariables } from './child-variables.js';

/** What a child of a grant gets. */
export interface Inheritance {
  readonly variables: ChildVariables;
  /** The lock of the grant's owner, where a process owns it: an open descriptor, to be passed on. */
  readonly ownerFd: number | undefined;
}

/** @throws as {@link Grant.spawn} */
export function spawnWith(
  { variables, ownerFd }: Inheritance,
  command: string,
  args: readonly string[],
  options: SpawnOptions,
): ChildProcess {
  const { stdio = 'pipe' } = options;
  const streams: StdioOptions = Array.isArray(stdio) ? [...stdio] : [stdio, stdio, stdio];
  // Behind the standard streams, which are pipes where they are left out.
  while (streams.length < 3) streams.push('pipe');
  if (ownerFd !== undefined) streams.push(ownerFd);
  const env = { ...(options.env ?? process.env), ...variables };
  return spawn(command, args, { ...options, env, stdio: streams });
}

// Its memory prefers these nodes.
function near(nodes: NodeSet, start: () => ChildProcess): ChildProcess {
  const restore = preferNodes(nodes);
  try {
    return start();
  } finally {
    restore();
  }
}

/**
 * Has `start` start a child that is born on the CPUs of the grant, and whose memory prefers its
 * nodes. With cgroup v2, where threads are not moved, the child is moved once it is there.
 */
export function startOn(
  { cpus, memoryNodes, group, learnChoices }: GrantedThreads,
  start: () => ChildProcess,
): ChildProcess {
  learnChoices();
  if (!group || group.canStartInside) return bornOn({ memoryNodes, group }, cpus, start).value;
  const child = near(memoryNodes, start);
  try {
    if (child.pid !== undefined) group.attach(child.pid);
  } catch (error) {
    // It may have ended already.
    if (error instanceof NumalignError && error.errnoName === 'ESRCH') return child;
    child.kill('SIGKILL');
    throw error;
  }
  return child;
}
