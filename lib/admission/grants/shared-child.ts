// Starts children in the shared pool, which are shared members from their first instruction.
import type { ChildProcess } from 'node:child_process';
import type { Assignments } from '../../account/assignments.js';
import { cpusNow } from '../../account/cpus-now.js';
import { sharedPool, universe } from '../../account/pools.js';
import { NumalignError, unlessRefused } from '../../base/errors.js';
import { native } from '../../base/native.js';
import { affinity } from '../../machine/affinity.js';
import type { CpuSet } from '../../machine/cpu-set.js';
import { identifyProcess } from '../../processes/process-identity.js';
import { openBirth } from '../../threads/birth.js';
import type { Host } from '../host.js';
import { transact } from '../transact.js';

/**
 * Has `start` start a child in the shared pool. The lock keeps CPUs from being granted before the
 * child is a registered member, which leaves such CPUs.
 * @throws as {@link Manager.startChild}
 */
export function startShared(host: Host, start: () => ChildProcess): Promise<ChildProcess> {
  return transact(host, undefined, async (state) => {
    const { members } = host.enforcer;
    if (!members) throw new NumalignError('ERR_SIMULATED_MACHINE', 'no process runs on a simulated machine');
    host.enforcer.learnAskedMasks(state.settings);
    const { child, choice } = startInPool(host, state, start);
    if (child.pid === undefined) return child;
    try {
      members.registry.addProcess(child.pid);
      if (choice) members.learnAskedMask(child.pid, choice);
      host.enforcer.share(child.pid, state, { leavesGrants: true });
      host.enforcer.apply(state);
    } catch (error) {
      // It may have ended already.
      if (!identifyProcess(child.pid)) return child;
      child.kill('SIGKILL');
      throw error;
    }
    return child;
  });
}

// A child inherits the mask of the thread that starts it. `choice` is the mask that it would choose
// by itself, if that is wider: without it, the child would not return to released CPUs.
function startInPool(host: Host, state: Assignments, start: () => ChildProcess) {
  const now = cpusNow(host.topology);
  const pool = sharedPool(state, now);
  const mask = affinity();
  if (mask.isSubsetOf(pool)) {
    const threadId = native.threadId();
    return { child: start(), choice: native.choices().find(({ tid }) => tid === threadId) };
  }
  const choice = { chosen: universe(state.settings, now).words, applied: pool.words, asked: pool.words };
  return { child: startOn(pool, start), choice };
}

// If the cpuset of this process, such as a grant's, has none of the CPUs, the child leaves it next.
function startOn(cpus: CpuSet, start: () => ChildProcess): ChildProcess {
  const close = unlessRefused(() => openBirth({}, cpus));
  try {
    return start();
  } finally {
    close?.();
  }
}
