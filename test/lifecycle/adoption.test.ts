// needs: process
// A pod that is adopted among running processes.
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { affinity } from '../../lib/entries/diagnostics.js';
import { CpuSet, type Manager, openManager, pin } from '../../lib/index.js';
import { Agent } from '../support/agent.js';
import { errorOf } from '../support/error-of.js';
import { end, hierarchies, makeCgroup, populate } from '../support/owner-cgroups.js';
import { makeStateDir } from '../support/state-dir.js';

const ALL = affinity();
const LAST = CpuSet.of([...ALL].at(-1)!);
const POD = { uid: 'p', containers: [{ name: 'main', cpus: LAST }] };

beforeEach(() => void pin(ALL));

async function open(stateDir = makeStateDir()): Promise<Manager> {
  const manager = await openManager({ stateDir });
  onTestFinished(() => manager.close());
  return manager;
}

describe.runIf(ALL.size > 1)('a pod that is adopted on this machine', () => {
  it('has its CPUs without shared members once it is on record, visible to others', async () => {
    const manager = await open();
    const agent = new Agent();
    await agent.tell('open', { stateDir: manager.stateDir });
    await manager.adopt(POD);
    const left = String(ALL.difference(LAST));
    expect([String(affinity()), await agent.tell('mask')]).toEqual([left, left]);
    expect(await agent.tell('grants')).toMatchObject([
      { uid: 'p', cpus: String(LAST), alive: true, owner: { kind: 'persistent' }, cgroup: null },
    ]);
    await agent.tell('release', { uid: 'p' });
    await expect.poll(() => String(affinity())).toBe(String(ALL));
  });

  it('is refused to the second of two with the same CPUs, whose members stay', async () => {
    const manager = await open();
    const agent = new Agent();
    await agent.tell('open', { stateDir: manager.stateDir });
    const { error } = await agent.ask('adopt', {
      uid: 'q',
      containers: [{ name: 'main', cpus: String(ALL) }],
    });
    expect(error!.code).toBe('ERR_ADOPTION');
    expect(await agent.tell('mask')).toBe(String(ALL));
    await agent.tell('adopt', { uid: 'q', containers: [{ name: 'main', cpus: String(LAST) }] });
    expect((await errorOf(() => manager.adopt(POD))).message).toContain('which grant q holds');
    await agent.kill();
    expect(manager.grants()).toMatchObject([{ uid: 'q', alive: true }]);
  });

  it.each(hierarchies())('lives by its cgroup (%s)', async (_, mount) => {
    const manager = await open();
    const cgroup = makeCgroup(mount);
    const child = populate(cgroup);
    await manager.adopt(POD, { owner: { cgroup } });
    expect(manager.grants()).toMatchObject([{ alive: true, owner: { kind: 'cgroup', cgroup } }]);
    await end(child);
    expect(manager.grants()).toMatchObject([{ alive: false }]);
    await manager.adopt({ ...POD, uid: 'q' });
    expect(manager.grants().map(({ uid }) => uid)).toEqual(['q']);
  });
});
