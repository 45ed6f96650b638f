// needs: machine
// Threads of this process in the cgroup of a grant, on the real kernel.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { NumalignError } from '../../lib/base/errors.js';
import { native } from '../../lib/base/native.js';
import { CpuSet } from '../../lib/index.js';
import { hierarchy, isUsable } from '../cgroups/own-root.js';
import { errorOf } from '../support/error-of.js';
import { makeStateDir } from '../support/state-dir.js';
import { cgroupOf, opened, ownCgroups, strangeGroup } from './members.js';

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

describe.skipIf(!isUsable)('a process that could not leave the cgroup of its grant', () => {
  it('goes back to where it came from at the next attempt', async () => {
    const manager = await opened({ stateDir: makeStateDir(), ...ownCgroups() });
    const grant = await manager.acquire({ cpu: 1 });
    const former = join(hierarchy!.mount.point, cgroupOf('self'));
    const group = strangeGroup();
    const moveTo = (path: string) => writeFileSync(join(path, 'cgroup.procs'), String(process.pid));
    moveTo(group);
    onTestFinished(() => moveTo(former));
    const home = cgroupOf('self');
    grant.pin();
    const refusal = new NumalignError('ERR_SYSCALL', 'no file can be opened');
    const refused = vi.spyOn(native, 'rememberMasks').mockImplementationOnce(() => {
      throw refusal;
    });
    onTestFinished(() => refused.mockRestore());
    expect(await errorOf(() => grant.release())).toBe(refusal);
    expect(cgroupOf('self')).toContain(grant.uid);
    await grant.release();
    expect(cgroupOf('self')).toBe(home);
  });
});

describe.skipIf(!isUsable)('a process that left only the cgroup of its grant', () => {
  it('is put back by the next comparison', async () => {
    const manager = await opened({ stateDir: makeStateDir(), ...ownCgroups() });
    const grant = await manager.acquire({ cpu: 1 });
    grant.pin();
    const refusal = new NumalignError('ERR_SYSCALL', 'no file can be opened');
    const refused = vi.spyOn(native, 'undoPin').mockImplementationOnce(() => {
      throw refusal;
    });
    onTestFinished(() => refused.mockRestore());
    expect(await errorOf(() => grant.release())).toBe(refusal);
    await manager.reconcile();
    expect(cgroupOf('self')).toContain(grant.uid);
    await grant.release();
    expect(cgroupOf('self')).not.toContain(grant.uid);
  });
});
