// Children that run in the shared pool: there from their first instruction, and shared members.
import type { ChildProcess } from 'node:child_process';
import type { Assignments } from '../../account/assignments.js';
import { cpusNow } from '../../account/cpus-now.js';
import { sharedPool, universe } from '../../account/pools.js';
import { NumalignError, unlessRefused } from '../../base/errors.js';
import { native } from '../../base/native.js';
import { openBirth } from '../../births/birth.js';
import { affinity } from '../../machine/affinity.js';
import type { CpuSet } from '../../machine/cpu-set.js';
import { identifyProcess } from '../../processes/process-identity.js';
import type { Site } from '../site.js';
import { transact } from '../transact.js';

/**
 * Has `start` start a child of the shared pool. Under the lock: nobody is granted the CPUs before the
 * child is known as a member, which leaves them.
 * @throws as {@link Manager.startChild}
 */
export function startShared(site: Site, start: () => ChildProcess): Promise<ChildProcess> {
  return transact(site, undefined, async (state) => {
    const { members } = site.enforcer;
    if (!members) throw new NumalignError('ERR_SIMULATED_MACHINE', 'nobody runs on a simulated machine');
    site.enforcer.learnChoices(state.settings);
    const { child, choice } = born(site, state, start);
    if (child.pid === undefined) return child;
    try {
      members.registry.addProcess(child.pid);
      if (choice) members.noteChoice(child.pid, choice);
      site.enforcer.shareAnyway(child.pid, state);
      site.enforcer.apply(state);
    } catch (error) {
      // It may have ended already.
      if (!identifyProcess(child.pid)) return child;
      child.kill('SIGKILL');
      throw error;
    }
    return child;
  });
}

// A child has the mask of the thread that starts it. `choice`: what it would choose, where the mask
// is narrower: else it would not come back to CPUs that are given back.
function born(site: Site, state: Assignments, start: () => ChildProcess) {
  const now = cpusNow(site.topology);
  const pool = sharedPool(state, now);
  const mask = affinity();
  if (mask.isSubsetOf(pool)) {
    const own = native.threadId();
    return { child: start(), choice: native.choices().find(({ tid }) => tid === own) };
  }
  const choice = { chosen: universe(state.settings, now).words, applied: pool.words, asked: pool.words };
  return { child: bornOn(pool, start), choice };
}

// Where the cpuset of this process has none of the CPUs, as that of a grant, the child leaves it next.
function bornOn(cpus: CpuSet, start: () => ChildProcess): ChildProcess {
  const close = unlessRefused(() => openBirth({}, cpus));
  try {
    return start();
  } finally {
    close?.();
  }
}
