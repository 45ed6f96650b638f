// needs: agents
// The effects of a failed commit.
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished, vi } from 'vitest';
import { NumalignError } from '../../lib/base/errors.js';
import { discover } from '../../lib/entries/topology.js';
import { CpuSet, openManager } from '../../lib/index.js';
import { Ledger } from '../../lib/state/ledger.js';
import { StateReader } from '../../lib/state/state-reader.js';
import { Agent } from '../support/agent.js';
import { errorOf } from '../support/error-of.js';
import { breakCommits } from '../support/full-disk.js';
import { makeStateDir } from '../support/state-dir.js';
import { membersOf, ownerMembersOf } from '../support/state-text.js';

const MACHINE = 'numa:2(memory=8GiB) core:8 pu:1';

async function open(stateDir = makeStateDir('/dev/shm')) {
  const manager = await openManager({ topology: await discover({ synthetic: MACHINE }), stateDir });
  onTestFinished(() => manager.close());
  return manager;
}

it('an acquire that could not be written leaves no claim, so that an opener finds a sound state', async () => {
  const manager = await open();
  const { stateDir } = manager;
  await manager.acquire({ cpu: 1, name: 'kept' });
  const [{ owner }] = membersOf(stateDir).pods;
  const repair = breakCommits(stateDir);
  const error = await errorOf(() => manager.acquire({ cpu: 2, name: 'failed' }));
  repair();
  expect(error.code).toBe('ERR_SYSCALL');
  expect(ownerMembersOf(stateDir, owner.uuid).pods).toMatchObject([{ name: 'kept' }]);
  const agent = new Agent();
  await agent.tell('open', { stateDir, simulate: MACHINE });
  expect(await agent.tell('grants')).toMatchObject([{ name: 'kept' }]);
  expect(readdirSync(stateDir)).not.toContain('quarantine');
});

it('a commit whose outcome could not be read fails with its own error, and the next one settles the claim', async () => {
  const manager = await open();
  const { stateDir } = manager;
  await manager.acquire({ cpu: 1, name: 'kept' });
  const [{ owner }] = membersOf(stateDir).pods;
  // The state is longer than the owner's file.
  for (let i = 0; i < 3; i++) await manager.acquire({ cpu: 1, owner: 'persistent' });
  const repair = breakCommits(stateDir);
  const look = vi.spyOn(StateReader.prototype, 'finds').mockImplementationOnce(() => {
    throw new NumalignError('ERR_SYSCALL', 'cannot read state.json', { errno: 5 });
  });
  onTestFinished(() => look.mockRestore());
  const error = await errorOf(() => manager.acquire({ cpu: 2, name: 'failed' }));
  repair();
  expect(error.errnoName).toBe('EFBIG');
  await (await manager.acquire({ cpu: 1, owner: 'persistent' })).release();
  expect(ownerMembersOf(stateDir, owner.uuid).pods).toMatchObject([{ name: 'kept' }]);
});

it('a claim that fits only in part leaves nothing of it in the owner’s file', async () => {
  const manager = await open();
  const { stateDir } = manager;
  await manager.acquire({ cpu: 1, name: 'kept' });
  const [{ owner }] = membersOf(stateDir).pods;
  const sizeOf = () => statSync(join(stateDir, 'owners', owner.uuid)).size;
  const before = sizeOf();
  const repair = breakCommits(stateDir, before + 20);
  const error = await errorOf(() => manager.acquire({ cpu: 2 }));
  repair();
  expect([error.code, error.errnoName]).toEqual(['ERR_SYSCALL', 'EFBIG']);
  expect(sizeOf()).toBe(before);
  expect(ownerMembersOf(stateDir, owner.uuid).pods).toMatchObject([{ name: 'kept' }]);
});

it('a claim is taken back even if the line that says so does not fit', async () => {
  const manager = await open();
  const { stateDir } = manager;
  await manager.acquire({ cpu: 1, name: 'kept' });
  const [{ owner }] = membersOf(stateDir).pods;
  // The state is longer than the owner's file.
  for (let i = 0; i < 3; i++) await manager.acquire({ cpu: 1, owner: 'persistent' });
  const sizeOf = () => statSync(join(stateDir, 'owners', owner.uuid)).size;
  const before = sizeOf();
  const grant = await manager.acquire({ cpu: 2, name: 'other' });
  const claim = sizeOf() - before;
  await grant.release();
  // The line that takes the claim back is longer than the space that is left then.
  const limit = sizeOf() + claim + 20;
  expect(limit).toBeLessThan(statSync(join(stateDir, 'state.json')).size);
  const repair = breakCommits(stateDir, limit);
  const error = await errorOf(() => manager.acquire({ cpu: 2, name: 'other' }));
  repair();
  expect([error.code, error.errnoName]).toEqual(['ERR_SYSCALL', 'EFBIG']);
  expect(ownerMembersOf(stateDir, owner.uuid).pods).toMatchObject([{ name: 'kept' }]);
});

it('an older state that is put back with all its files does not give out persistent grants', async () => {
  const stateDir = makeStateDir('/dev/shm');
  const manager = await open(stateDir);
  await manager.acquire({ cpu: 1, owner: 'persistent', name: 'first' });
  const names = ['state.json', 'state.copy.json', 'lock'];
  const backup = names.map((name) => [name, readFileSync(join(stateDir, name))] as const);
  await manager.use({ cpu: 1 }, () => {});
  const { cpus } = await manager.acquire({ cpu: 2, owner: 'persistent', name: 'second' });
  manager.close();
  await new Promise((resolve) => setImmediate(resolve));
  for (const [name, bytes] of backup) writeFileSync(join(stateDir, name), bytes);
  const agent = new Agent();
  await agent.tell('open', { stateDir, simulate: MACHINE });
  const grants = await agent.tell('grants');
  expect(grants.map(({ name }: { name: string }) => name)).toEqual(['first', 'second']);
  const { cpus: others } = await agent.tell('acquire', { cpu: 4 });
  expect(others.split(',')).not.toContain(String(cpus));
});

it('a lost state comes back from the good lines of a damaged copy', async () => {
  const manager = await open();
  const { stateDir } = manager;
  await manager.configure({ reservedSystemCPUs: '15' });
  await manager.acquire({ cpu: 1, owner: 'persistent', name: 'lasting' });
  for (let i = 0; i < 3; i++) await manager.use({ cpu: 1, owner: 'persistent' }, () => {});
  const { generation } = membersOf(stateDir);
  const copy = readFileSync(join(stateDir, 'state.copy.json'), 'utf8').split('\n');
  copy[copy.length - 3] = copy.at(-3)!.replace('change', 'chance');
  manager.close();
  await new Promise((resolve) => setImmediate(resolve));
  const moved = makeStateDir('/dev/shm');
  const next = await open(moved);
  next.close();
  writeFileSync(join(moved, 'state.copy.json'), copy.join('\n'));
  writeFileSync(join(moved, 'state.json'), '');
  const later = await open(moved);
  expect(String(later.settings().reservedSystemCPUs)).toBe('15');
  expect(later.generation()).toBeLessThan(generation + 10);
  expect(Ledger.open(moved).recoveries).toHaveLength(1);
});

it('a step whose second commit cannot be written claims what its first commit has', async () => {
  const manager = await open();
  const { stateDir } = manager;
  await manager.acquire({ cpu: 1, name: 'kept' });
  const [{ owner }] = membersOf(stateDir).pods;
  const ledger = Ledger.open(stateDir);
  const error = await errorOf(() =>
    ledger.transact({ lockTimeoutMs: 1000, totalOn: () => 0 }, async (checkpoint, commit) => {
      const { assignments } = checkpoint!;
      const [pod] = assignments.pods;
      const [container] = pod!.containers;
      const second = { ...pod!, uid: 'second', containers: [{ ...container!, cpus: CpuSet.of(5) }] };
      const next = { ...assignments, pods: [...assignments.pods, second] };
      await commit(next);
      const repair = breakCommits(stateDir);
      try {
        await commit({ ...next, lastCpus: [{ name: 'another', cpus: CpuSet.of(7) }] });
      } finally {
        repair();
      }
    }),
  );
  expect(error.code).toBe('ERR_SYSCALL');
  expect(membersOf(stateDir).pods).toHaveLength(2);
  expect(ownerMembersOf(stateDir, owner.uuid).pods).toMatchObject([{ name: 'kept' }, { uid: 'second' }]);
});
