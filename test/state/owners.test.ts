// needs: agents
// Owners other than processes: cgroups of this machine (as root), and persistent ones.
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { discover } from '../../lib/entries/topology.js';
import { type Manager, openManager } from '../../lib/index.js';
import { identifyCgroup, isCgroupAlive } from '../../lib/processes/cgroup-owner.js';
import { isOfBoot } from '../../lib/state/files/owner-claims.js';
import { Ledger } from '../../lib/state/ledger.js';
import { Agent } from '../support/agent.js';
import { errorOf, thrownBy } from '../support/error-of.js';
import { end, hierarchies, makeCgroup, populate } from '../support/owner-cgroups.js';
import { canUnshare } from '../support/rights.js';
import { makeStateDir } from '../support/state-dir.js';
import { membersOf, ownerMembersOf } from '../support/state-text.js';
// @ts-expect-error without declarations
import { whyNotPlaceable } from '../support/usable-cpus.mjs';

async function open(stateDir = makeStateDir()): Promise<Manager> {
  const manager = await openManager({ topology: await discover({ synthetic: 'core:8 pu:1' }), stateDir });
  onTestFinished(() => manager.close());
  return manager;
}

describe.each(hierarchies())('a cgroup (%s) as an owner', (version, mount) => {
  it('has its grant until the last process below it has ended', async () => {
    const manager = await open();
    const cgroup = makeCgroup(mount);
    const inner = makeCgroup(cgroup, 'inner');
    const child = populate(inner);
    const grant = await manager.acquire({ cpu: 2, owner: { cgroup } });
    expect(manager.grants()).toMatchObject([
      { uid: grant.uid, alive: true, owner: { kind: 'cgroup', pid: null } },
    ]);
    const later = await open(manager.stateDir);
    await (await later.acquire({ cpu: 1 })).release();
    expect(later.grants()).toHaveLength(1);
    await end(child);
    expect(later.grants()).toMatchObject([{ uid: grant.uid, alive: false }]);
    expect((await manager.acquire({ cpu: 7 })).cpus.intersects(grant.cpus)).toBe(true);
  });

  // A listener checks v1 every half minute: the kernel sends no notice.
  it.runIf(version === 'v2')('gives its grant back at once if there is a listener', async () => {
    const cgroup = makeCgroup(mount);
    const child = populate(makeCgroup(cgroup, 'inner'));
    const earlier = await open();
    const { uid } = await earlier.acquire({ cpu: 2, owner: { cgroup } });
    const manager = await open(earlier.stateDir);
    const heard = new Promise<string[]>((resolve) => {
      manager.on('change', ({ removed }) => removed.length > 0 && resolve(removed.map((each) => each.uid)));
    });
    const later = await manager.acquire({ cpu: 1, owner: { cgroup } });
    while (manager.grants().length < 2) await new Promise(setImmediate);
    await end(child);
    expect(await heard).toEqual(expect.arrayContaining([uid]));
    await expect.poll(() => manager.grants()).toEqual([]);
    expect(later.uid).not.toBe(uid);
  });

  it('is dead once its folder is removed, and a new one at the same path is another', async () => {
    const manager = await open();
    const cgroup = makeCgroup(mount);
    const child = populate(cgroup);
    await manager.acquire({ cpu: 2, owner: { cgroup } });
    await end(child);
    rmdirSync(cgroup);
    expect(manager.grants()).toMatchObject([{ alive: false }]);
    mkdirSync(cgroup);
    for (const file of ['cpuset.cpus', 'cpuset.mems']) {
      try {
        writeFileSync(join(cgroup, file), readFileSync(join(mount, file)));
      } catch {
        // Not from this hierarchy.
      }
    }
    await end(populate(cgroup));
    populate(cgroup);
    expect(manager.grants()).toMatchObject([{ alive: false }]);
  });

  it('must exist and have a process', async () => {
    const manager = await open();
    const cgroup = makeCgroup(mount);
    for (const [bad, why] of [
      [cgroup, /empty/],
      [join(cgroup, 'nothing'), /ENOENT/],
      [join(cgroup, 'cgroup.procs'), /a cgroup/],
      ['/tmp', /a cgroup/],
      ['relative', /absolute/],
      [7, /absolute/],
    ] as const) {
      const error = await errorOf(() => manager.acquire({ cpu: 1, owner: { cgroup: bad as string } }));
      expect([error.code, error.message]).toEqual(['ERR_INVALID_OPTION', expect.stringMatching(why)]);
    }
    const misspelled = { cgroups: cgroup } as unknown as { cgroup: string };
    expect((await errorOf(() => manager.acquire({ cpu: 1, owner: misspelled }))).message).toContain(
      'did you mean',
    );
    expect(manager.grants()).toEqual([]);
  });

  it('comes back with its grants after the state was damaged, while a process is in it', async () => {
    const manager = await open();
    const [kept, emptied] = [makeCgroup(mount), makeCgroup(mount)];
    populate(kept);
    const child = populate(emptied);
    const grant = await manager.acquire({ cpu: 2, owner: { cgroup: kept } });
    await manager.acquire({ cpu: 2, owner: { cgroup: emptied } });
    await end(child);
    for (const name of ['state.json', 'state.copy.json'])
      writeFileSync(join(manager.stateDir, name), 'nonsense');
    await manager.configure({});
    expect(manager.grants().map(({ uid, cpus }) => [uid, String(cpus)])).toEqual([
      [grant.uid, String(grant.cpus)],
    ]);
  });

  it('leaves no grants, unlike a process that has ended', async () => {
    const manager = await open();
    const cgroup = makeCgroup(mount);
    const child = populate(cgroup);
    await manager.acquire({ cpu: 1, owner: { cgroup } });
    await manager.acquire({ cpu: 1, owner: 'persistent' });
    await end(child);
    expect(Ledger.open(manager.stateDir).owners.withLeftGrants()).toEqual([]);
  });

  // In a container the machine's hierarchy may be mounted, though its own cgroup namespace is another.
  it.runIf(canUnshare).each(['-m', '-C'])(
    'is known to have ended where the whole hierarchy is seen (unshare %s)',
    async (option) => {
      const stateDir = makeStateDir();
      const manager = await openManager({ stateDir });
      onTestFinished(() => manager.close());
      const cgroup = makeCgroup(mount);
      const child = populate(cgroup);
      const agent = new Agent(['unshare', option]);
      await agent.tell('open', { stateDir });
      await agent.tell('acquire', { cpu: 1, owner: { cgroup } });
      await agent.kill();
      expect(manager.grants()).toMatchObject([{ alive: true }]);
      await end(child);
      rmdirSync(cgroup);
      expect(manager.grants()).toMatchObject([{ alive: false }]);
      const next = new Agent(['unshare', option]);
      await next.tell('open', { stateDir });
      expect(await next.tell('grants')).toEqual([]);
      // This process is a member of the shared pool.
      await expect.poll(() => whyNotPlaceable(), { timeout: 10_000 }).toBeUndefined();
    },
  );

  it.runIf(canUnshare)('counts as alive wherever its state is unknown', async () => {
    const stateDir = makeStateDir();
    const manager = await openManager({ stateDir });
    const cgroup = makeCgroup(mount);
    const child = populate(cgroup);
    await manager.acquire({ cpu: 1, owner: { cgroup } });
    const aliveFrom = async (...options: string[]) => {
      const agent = new Agent(['unshare', ...options]);
      await agent.tell('open', { stateDir });
      const [grant] = await agent.tell('grants');
      await agent.kill();
      return grant?.alive;
    };
    expect(await aliveFrom('-m')).toBe(true);
    expect(await aliveFrom('-pf', '--mount-proc', '--kill-child=SIGKILL')).toBe(true);
    await end(child);
    // An inner pid namespace sees no processes in v1; v2 reports all of them.
    if (version === 'v1') expect(await aliveFrom('-pf', '--mount-proc', '--kill-child=SIGKILL')).toBe(true);
    rmdirSync(cgroup);
    expect(manager.grants()).toMatchObject([{ alive: false }]);
    expect(await aliveFrom('-m')).toBeUndefined();
  });

  it.runIf(canUnshare)(
    'counts as alive if another part of the hierarchy, or another hierarchy, is mounted at its path',
    () => {
      const [cgroup, other] = [makeCgroup(mount), makeCgroup(mount)];
      populate(cgroup);
      const identity = identifyCgroup(cgroup);
      const script = `
      import { isCgroupAlive } from './dist-test/lib/processes/cgroup-owner.js';
      console.log(isCgroupAlive(JSON.parse(process.argv[1])));`;
      const judged = (of: object, ...mounting: string[]) =>
        execFileSync(
          'unshare',
          [
            '-m',
            'sh',
            '-c',
            `${mounting.join(' ')} && exec "$0" "$@"`,
            process.execPath,
            '--input-type=module',
            '-e',
            script,
            JSON.stringify(of),
          ],
          { encoding: 'utf8' },
        ).trim();
      const missing = { ...identity, path: `${cgroup}-gone` };
      expect(judged(missing, 'true')).toBe('false');
      expect(judged(missing, 'mount', '--bind', other, mount)).toBe('true');
      expect(judged(missing, 'mount', '-t', 'tmpfs', 'tmpfs', mount)).toBe('true');
      expect(judged(identity, 'true')).toBe('true');
      expect(isCgroupAlive({ ...identity, inode: '1' })).toBe(false);
      expect(isCgroupAlive({ ...identity, inode: '1', namespace: 'cgroup:[1]' })).toBe(true);
      expect(isCgroupAlive({ ...identity, inode: '1', device: '1' })).toBe(true);
    },
  );
});

describe('a state', () => {
  it('is of this boot if it says so, whichever processes live', () => {
    expect(isOfBoot('this', 'this', undefined)).toBe(true);
    expect(isOfBoot('another', 'this', undefined)).toBe(false);
  });
});

describe('an owner', () => {
  it('that is persistent has a file for each grant, which ends with the grant', async () => {
    const manager = await open();
    const [a, b] = [
      await manager.acquire({ cpu: 1, owner: 'persistent' }),
      await manager.acquire({ cpu: 1, owner: 'persistent' }),
    ];
    const { pods } = membersOf(manager.stateDir);
    const [first, second] = pods.map(({ owner }: { owner: { uuid: string } }) => owner.uuid);
    expect(first).not.toBe(second);
    const file = (uuid: string) => thrownBy(() => readFileSync(join(manager.stateDir, 'owners', uuid)));
    expect([file(first), file(second)]).toEqual([undefined, undefined]);
    await a.release();
    expect([file(first), file(second)]).toEqual([expect.objectContaining({ code: 'ENOENT' }), undefined]);
    await b.release();
  });

  it('of a container that has started is rewritten', async () => {
    const manager = await open();
    const cpu = (name: string) => ({
      name,
      requests: { cpu: 1, memory: '1Mi' },
      limits: { cpu: 1, memory: '1Mi' },
    });
    const pod = await manager.admit({ uid: 'pod', containers: [{ ...cpu('app') }] }, { owner: 'persistent' });
    await pod.markStarted('app');
    const { pods } = membersOf(manager.stateDir);
    const file = ownerMembersOf(manager.stateDir, pods[0].owner.uuid);
    expect(file.pods).toEqual(pods);
  });
});
