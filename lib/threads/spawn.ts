// Programs that are started on the CPUs of a grant.
import { type ChildProcess, type SpawnOptions, type StdioOptions, spawn } from 'node:child_process';
import { NumalignError } from '../base/errors.js';
import { native } from '../base/native.js';
import type { GrantedThreads } from './granted-threads.js';
import { preferring } from './memory.js';

/**
 * What a child finds in its environment. By NUMALIGN_GRANT numalign/preload knows that there is
 * nothing to acquire.
 */
export interface ChildVariables {
  readonly NUMALIGN_GRANT: string;
  readonly NUMALIGN_CPUS: string;
  readonly NUMALIGN_DEVICES: string;
}

/**
 * `ownerFd`: the lock of the owner, of which the child gets a copy.
 * @throws as {@link Grant.spawn}
 */
export function spawnOn(
  target: GrantedThreads,
  variables: ChildVariables,
  ownerFd: number | undefined,
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
  return startOn(target, () =>
    preferring(target.memoryNodes, () => spawn(command, args, { ...options, env, stdio: streams })),
  );
}

// A child is born with the mask, and in the cgroup, of the thread that starts it. With cgroup v2,
// where threads are not moved, it is moved once it is there.
function startOn({ cpus, group, learnChoices }: GrantedThreads, start: () => ChildProcess): ChildProcess {
  learnChoices();
  const born = () => native.bornOn(cpus.words, start).value;
  if (!group) return born();
  if (group.canStartInside) return group.startInside(born);
  const child = start();
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
