// needs: machine
// What moves with a grant, on the word of a record that others may have written.
import { execFileSync } from 'node:child_process';
import { mkdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import type { OwnerRecord, PodAssignment } from '../../lib/account/pod-assignment.js';
import { type Enforcer, enforcerOf, noEnforcer } from '../../lib/enforcement/enforcer.js';
import { relocate, tenantPids } from '../../lib/enforcement/relocation.js';
import { discover } from '../../lib/entries/topology.js';
import { CpuSet, openManager } from '../../lib/index.js';
import { identifyCgroup, isCgroupAlive, isCgroupHere } from '../../lib/processes/cgroup-owner.js';
import { Ledger } from '../../lib/state/ledger.js';
import { ALL, hierarchy, idler, isUsable, ROOT, read, removeAll } from '../cgroups/own-root.js';
import { makeStateDir } from '../support/state-dir.js';
import { masksOf } from './members.js';
import { sharedFolder } from './users.js';

const FIRST = CpuSet.of(ALL.first!);

const OWNER = { uuid: 'u', pid: null, command: null, unknown: {} };

function podOf(owner: Partial<OwnerRecord>): PodAssignment {
  const held = { held: CpuSet.EMPTY, reusable: { cpus: CpuSet.EMPTY } };
  const containers = [{ name: 'main', cpus: FIRST, ...held }];
  return { uid: 'a', booking: null, upcoming: null, containers, owner } as unknown as PodAssignment;
}

const move = (pod: PodAssignment, enforcer: Partial<Enforcer> = {}) =>
  relocate({ enforcer: { ...noEnforcer(), ...enforcer } }, pod, { from: ALL, to: pod });

describe.runIf(isUsable)('a process in the cgroup that owns a grant', () => {
  const folder = join(hierarchy?.mount.point ?? '/', `${ROOT}-owner`);
  let pid: number;

  beforeEach(() => {
    pid = idler();
    mkdirSync(folder);
    onTestFinished(() => removeAll(folder));
    for (const file of ['cpuset.cpus', 'cpuset.mems'])
      writeFileSync(join(folder, file), read(hierarchy!.mount.point, file));
    writeFileSync(join(folder, 'cgroup.procs'), String(pid));
  });

  const owner = () => ({ ...OWNER, kind: 'cgroup', cgroup: identifyCgroup(folder) }) as const;

  it('moves with the grant', () => {
    move(podOf(owner()));
    expect(masksOf(pid)).toEqual([String(FIRST)]);
  });

  it('stays if this process may not move it, and the grant too', () => {
    expect(() => move(podOf(owner()), { mayMoveOwner: () => false })).toThrow(
      expect.objectContaining({ code: 'ERR_ENFORCEMENT', message: expect.stringContaining(folder) }),
    );
    expect(masksOf(pid)).toEqual([String(ALL)]);
  });

  it('stays if the path leads to another cgroup now', () => {
    move(podOf({ ...owner(), cgroup: { ...owner().cgroup, inode: '1' } }));
    expect(masksOf(pid)).toEqual([String(ALL)]);
  });

  it('may be moved by root if only root can write the state, or the cgroup is below the root', async () => {
    const topology = await discover();
    const own = makeStateDir();
    const shared = sharedFolder();
    const enforcers = [own, shared].map((stateDir) =>
      enforcerOf(() => topology, Ledger.open(stateDir), null),
    );
    expect(enforcers.map((each) => each.mayMoveOwner(owner()))).toEqual([true, false]);
    const manager = await openManager({ stateDir: shared, cgroupRoot: `${ROOT}-owner`, sharedMember: false });
    onTestFinished(() => manager.close());
    const inside = { ...owner(), cgroup: { ...owner().cgroup, path: join(folder, 'below') } };
    const enforcer = enforcerOf(() => topology, Ledger.open(shared), undefined);
    expect([inside, owner()].map((each) => enforcer.mayMoveOwner(each))).toEqual([true, false]);
  });
});

describe('a process', () => {
  it('stays if only a folder that looks like a cgroup lists it', () => {
    const pid = idler();
    const path = makeStateDir();
    mkdirSync(path);
    writeFileSync(join(path, 'cgroup.procs'), String(pid));
    const { dev, ino } = statSync(path, { bigint: true });
    const cgroup = { path, device: String(dev), inode: String(ino), namespace: '' };
    move(podOf({ kind: 'cgroup', cgroup }));
    expect(masksOf(pid)).toEqual([String(ALL)]);
  });

  it('is in no cgroup whose folder has another file system', () => {
    const path = makeStateDir();
    mkdirSync(path);
    const { dev, ino } = statSync(path, { bigint: true });
    // Reading it would wait for a writer.
    execFileSync('mkfifo', [join(path, 'cgroup.events')]);
    const cgroup = { path, device: String(dev), inode: String(ino), namespace: '' };
    expect(isCgroupHere(cgroup)).toBe(false);
    expect(isCgroupAlive(cgroup)).toBe(true);
  });

  it('is no tenant of a grant by a doubtful registration', () => {
    const look = () =>
      ['it may be forged', undefined].map((doubt, i) => ({
        entry: { kind: 'process', pid: i + 1, grant: 'a' },
        doubt,
      }));
    const members = { registry: { look } } as unknown as Enforcer['members'];
    const pod = podOf({ kind: 'persistent', pid: null, uuid: 'u', cgroup: null });
    const pids = tenantPids({ enforcer: { ...noEnforcer(), members } }, pod, []);
    expect(pids).not.toContain(1);
    expect(pids).toContain(2);
  });
});
