// needs: machine
// The grants that a process may run on, without a kernel that keeps it off others.
import { closeSync, mkdirSync, mkdtempSync, openSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { OwnerRecord, PodAssignment } from '../../../lib/account/pod-assignment.js';
import { Holders } from '../../../lib/enforcement/members/holders.js';
import { CpuSet } from '../../../lib/index.js';
import { identifySelf } from '../../../lib/processes/process-identity.js';

const UUID = '7d1f1c60-0000-4000-8000-000000000000';

const owner = (parts: Partial<OwnerRecord> = {}): OwnerRecord => ({
  kind: 'process',
  uuid: UUID,
  pid: process.pid,
  command: null,
  cgroup: null,
  unknown: {},
  ...parts,
});
const persistent = owner({ kind: 'persistent', pid: null });

// A grant of one container, with the members that holders reads.
function grant(uid: string, of: OwnerRecord, cpus = '1'): PodAssignment {
  const running = CpuSet.parse(cpus);
  const container = { name: uid, cpus: running, held: running, reusable: { cpus: CpuSet.EMPTY } };
  return {
    uid,
    owner: of,
    containers: [container],
    upcoming: null,
    formerOwner: null,
  } as unknown as PodAssignment;
}

/** A file of this process with the name of an owner's. */
function ownerFile(): { open: () => number } {
  const folder = join(mkdtempSync(join(tmpdir(), 'numalign-test-')), 'owners');
  mkdirSync(folder);
  onTestFinished(() => rmSync(join(folder, '..'), { recursive: true }));
  return { open: () => openSync(join(folder, UUID), 'w') };
}

const uids = (pods: readonly PodAssignment[]) => pods.map(({ uid }) => uid).sort();

describe('the grants of a process', () => {
  it('are those that it owns, while it has the owner’s file open', () => {
    const holders = new Holders();
    const pods = [grant('a', owner()), grant('b', owner()), grant('c', owner({ pid: process.pid + 1 }))];
    const file = ownerFile();
    const held = () => uids(holders.grantsOf(pods, identifySelf()));
    expect(held()).toEqual([]);
    const first = file.open();
    const second = file.open();
    expect(held()).toEqual(['a', 'b']);
    closeSync(first);
    expect(held()).toEqual(['a', 'b']);
    closeSync(second);
    expect(held()).toEqual([]);
  });

  it('are those without an owner for which it has pinned threads', () => {
    const pods = [grant('a', persistent), grant('b', persistent), grant('c', owner())];
    const process = { ...identifySelf(), pinned: ['b', 'c', 'gone'] };
    expect(uids(new Holders().grantsOf(pods, process))).toEqual(['b']);
  });

  it('are those that it has handed over, while it has the file of their former owner open', () => {
    const holders = new Holders();
    const other = owner({ uuid: `8${UUID.slice(1)}`, pid: process.pid + 1 });
    const pods = [{ ...grant('a', other), formerOwner: UUID }, grant('b', other)];
    const file = ownerFile();
    const held = () => uids(holders.grantsOf(pods, identifySelf()));
    expect(held()).toEqual([]);
    const fd = file.open();
    expect(held()).toEqual(['a']);
    expect(uids(holders.grantsOf([grant('a', other)], identifySelf()))).toEqual([]);
    expect(held()).toEqual(['a']);
    closeSync(fd);
    expect(held()).toEqual([]);
  });

  it('are none without CPUs', () => {
    const process = { ...identifySelf(), pinned: ['a'] };
    expect(new Holders().grantsOf([grant('a', persistent, '')], process)).toEqual([]);
  });

  it('are the same whatever lists of grants were checked before', () => {
    // The same uid may belong to another grant in another list, or to the same grant before a
    // change.
    const pods = Array.from({ length: 12 }, (_, i) =>
      grant(`${i % 5}`, i % 2 === 0 ? persistent : owner({ pid: 1 + (i % 3) })),
    );
    const lists = fc.array(fc.shuffledSubarray(pods));
    const pinned = pods.map(({ uid }) => uid);
    fc.assert(
      fc.property(lists, (all) => {
        const holders = new Holders();
        for (const list of all) {
          const process = { ...identifySelf(), pinned };
          expect(uids(holders.grantsOf(list, process))).toEqual(uids(new Holders().grantsOf(list, process)));
        }
      }),
    );
  });
});
