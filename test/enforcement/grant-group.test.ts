// Threads of this process in the cgroup of a grant, on the real kernel.
import { describe, expect, it, onTestFinished } from 'vitest';
import { native } from '../../lib/base/native.js';
import { CpuSet } from '../../lib/index.js';
import { isUsable } from '../cgroups/own-root.js';
import { errorOf } from '../support/error-of.js';
import { makeStateDir } from '../support/state-dir.js';
import { cgroupOf, opened, ownCgroups } from './members.js';

describe.skipIf(!isUsable)('a process of which a thread is pinned for another grant', () => {
  it('is not in the cgroup of the grant after any refused attempt to place its threads there', async () => {
    const manager = await opened({ stateDir: makeStateDir(), ...ownCgroups() });
    const grant = await manager.acquire({ cpu: 1 });
    onTestFinished(async () => void (await grant.release()));
    const all = CpuSet.parse('0-1').words;
    native.pin({ tid: -1, cpus: all, grant: 'another', part: '', owner: 'this test', replace: true });
    onTestFinished(() => void native.undoPin('another', all));
    const home = cgroupOf('self');
    for (const place of [() => grant.pin(), () => grant.placeThreads(), () => grant.prewarmPool()]) {
      expect(await errorOf(place)).toMatchObject({
        code: 'ERR_ALREADY_PINNED',
        details: { grant: 'another' },
      });
      expect(cgroupOf('self')).toBe(home);
    }
    await grant.placeThreads({ replace: true });
    expect(cgroupOf('self')).toContain(grant.uid);
  });
});
