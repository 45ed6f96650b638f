// needs: machine
// Grants of ranges where CPUs come online, on a machine that stands for this one.
import { expect, it, onTestFinished, vi } from 'vitest';
import { native } from '../../lib/base/native.js';
import { discover } from '../../lib/entries/topology.js';
import { CpuSet, openManager } from '../../lib/index.js';
import { Topology } from '../../lib/machine/topology.js';
import { changed } from '../support/changed.js';
import { makeStateDir } from '../support/state-dir.js';

/** A kernel that says which CPUs are online, and that they have changed. */
function kernel() {
  const listeners: (() => void)[] = [];
  class Events {
    readonly close = () => {};
    constructor(listener: () => void) {
      listeners.push(listener);
    }
  }
  vi.spyOn(native, 'CpuEvents').mockImplementation(Events as never);
  const online = vi.spyOn(native, 'onlineCpus');
  onTestFinished(() => void vi.restoreAllMocks());
  return {
    say: (cpus: string) => online.mockReturnValue(CpuSet.parse(cpus).words),
    notify: () => {
      for (const each of listeners) each();
    },
  };
}

it('a grant of a range grows into CPUs that come online', async () => {
  const { say, notify } = kernel();
  say('0-3');
  const topology = new Topology('machine', (await discover({ synthetic: 'core:8 pu:1' })).handle);
  const manager = await openManager({
    ...{ topology, stateDir: makeStateDir(), sharedMember: false },
    cpuManagerReconcilePeriod: '1h',
    // This process cannot have CPUs that are not there.
    ignoreMask: true,
  });
  onTestFinished(() => manager.close());
  const grant = await manager.acquire({ cpu: { min: 1, max: 8 } });
  onTestFinished(async () => void (await grant.release()));
  expect(String(grant.cpus)).toBe('0-2');
  say('0-7');
  notify();
  await changed(manager, () => grant.cpus.size === 7);
});
