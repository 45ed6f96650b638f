// needs: process
import { execFileSync, spawnSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { affinity, threads } from '../../lib/entries/diagnostics.js';
import { discover } from '../../lib/entries/topology.js';
import { CpuSet, MACHINE_STATE_DIR, type ManagerOptions, openManager, pin } from '../../lib/index.js';
import { errorOf } from '../support/error-of.js';
import { canMount } from '../support/rights.js';
import { makeStateDir } from '../support/state-dir.js';
import { membersOf } from '../support/state-text.js';
import { decodeMembers } from '../torture/state-file.mjs';

const ALL = affinity();
const RESERVED = String(ALL.first);
const REST = String(ALL.difference(CpuSet.of(ALL.first!)));
const stateOf = membersOf;

async function open(options: ManagerOptions = {}) {
  const manager = await openManager({ stateDir: makeStateDir(), ...options });
  onTestFinished(() => manager.close());
  return manager;
}

// Tests end without a release: the confinement of the process is not its own choice.
beforeEach(() => void pin(ALL));

describe('acquire', () => {
  it('grants exclusive CPUs, records them on disk, and takes them out of the shared pool', async () => {
    const manager = await open({ reservedSystemCPUs: RESERVED });
    const grant = await manager.acquire({ cpu: 1, name: 'gateway' });
    expect(grant.cpus.size).toBe(1);
    expect(grant.cpus.isSubsetOf(CpuSet.parse(REST))).toBe(true);
    expect(grant.numaNodes.size).toBe(1);
    expect(grant.enforcement).toBe('members');
    expect(manager.sharedPool().equals(ALL.difference(grant.cpus))).toBe(true);
    const { pods, generation } = stateOf(manager.stateDir);
    expect(manager.generation()).toBe(generation);
    expect(pods).toMatchObject([
      {
        uid: grant.uid,
        name: 'gateway',
        owner: { kind: 'process', pid: process.pid },
        containers: [{ cpus: String(grant.cpus) }],
      },
    ]);
    await grant.release();
    expect(stateOf(manager.stateDir).pods).toEqual([]);
    expect(manager.sharedPool().equals(ALL)).toBe(true);
  });

  it('chooses by topology: a whole NUMA node of a simulated machine, then whole cores, near held ones', async () => {
    const topology = await discover({ synthetic: 'package:2 numa:2 core:2 pu:2' });
    const manager = await open({ topology, reservedSystemCPUs: '0' });
    const node = await manager.acquire({ cpu: 4 });
    expect([String(node.cpus), String(node.numaNodes)]).toEqual(['4-7', '1']);
    const core = await manager.acquire({ cpu: 2 });
    expect(String(core.cpus)).toBe('2-3');
    const balanced = await manager.acquire({
      cpu: 4,
      cpuManagerPolicyOptions: { 'distribute-cpus-across-numa': 'true' },
    });
    expect(String(balanced.cpus)).toBe('8-11');
    expect(String(manager.sharedPool())).toBe('0-1,12-15');
    expect(String(manager.freeCpus())).toBe('1,12-15');
    await Promise.all([node, core, balanced].map((grant) => grant.release()));
  });

  it('never gives the last of the shared pool away', async () => {
    const manager = await open();
    const error = await errorOf(() => manager.acquire({ cpu: ALL.size }));
    expect(error).toMatchObject({ code: 'ERR_INSUFFICIENT_CPUS' });
    expect(stateOf(manager.stateDir).pods).toEqual([]);
  });

  it('names the holders of missing CPUs', async () => {
    const manager = await open({ reservedSystemCPUs: RESERVED });
    const grant = await manager.acquire({ cpu: ALL.size - 1, name: 'greedy' });
    const error = await errorOf(() => manager.acquire({ cpu: 1 }));
    expect(error.code).toBe('ERR_INSUFFICIENT_CPUS');
    expect(error.message).toContain(
      `reserved: ${RESERVED}; held by "greedy" of process ${process.pid}: ${REST}`,
    );
    await grant.release();
  });

  it('refuses invalid requests, and changes nothing', async () => {
    const manager = await open();
    const before = readFileSync(join(manager.stateDir, 'state.json'), 'utf8');
    const bad: [object, RegExp][] = [
      [{ cpu: 0.5 }, /a part of a CPU cannot be exclusive/],
      [{ cpu: 2.5 }, /a range \{ min, max \}, or with mixed: true an amount such as 2.5/],
      [{ cpu: 0 }, /from 1 to/],
      [{ cpu: '1' }, /cpu must be/],
      [{}, /cpu must be/],
      [{ cpus: 1 }, /did you mean "cpu"/],
      [{ cpu: 1, name: '' }, /name must be/],
      [{ cpu: 1, name: 'a\nb' }, /name must be/],
      [{ cpu: 1, owner: 'me' }, /'process', 'persistent' or/],
      [{ cpu: { toString: null, deep: 1n } }, /cpu must be/],
      [
        { cpu: 1, cpuManagerPolicyOptions: { 'distribute-cpus-across-numas': true } },
        /did you mean "distribute-cpus-across-numa"/,
      ],
      [{ cpu: 1, cpuManagerPolicyOptions: { 'distribute-cpus-across-numa': 1 } }, /true or false/],
      [
        {
          cpu: 1,
          cpuManagerPolicyOptions: {
            'distribute-cpus-across-numa': true,
            'distribute-cpus-across-cores': true,
          },
        },
        /exclude each other/,
      ],
    ];
    for (const [options, message] of bad) {
      const error = await errorOf(() => manager.acquire(options as { cpu: number }));
      expect([error.code, error.message]).toEqual(['ERR_INVALID_OPTION', expect.stringMatching(message)]);
    }
    expect(readFileSync(join(manager.stateDir, 'state.json'), 'utf8')).toBe(before);
  });

  it('keeps any number of concurrent grants apart', async () => {
    const topology = await discover({ synthetic: 'package:2 numa:2 core:4 pu:2' });
    const manager = await open({ topology });
    const grants = await Promise.all(
      Array.from({ length: 10 }, (_, i) => manager.acquire({ cpu: 1 + (i % 3) })),
    );
    const all = grants.flatMap((grant) => grant.cpus.toArray());
    expect(new Set(all).size).toBe(all.length);
    expect(manager.sharedPool().size).toBe(32 - all.length);
    await Promise.all(grants.map((grant) => grant.release()));
    expect(manager.sharedPool().size).toBe(32);
  });
});

describe('use', () => {
  it('gives the CPUs back when the function ends, and when it throws', async () => {
    const manager = await open();
    const { containers } = manager.plan({ containers: [{ name: 'main', limits: { cpu: 1, memory: 1 } }] });
    expect(await manager.use({ cpu: 1 }, (grant) => String(grant.cpus))).toBe(String(containers[0]!.cpus));
    await expect(
      manager.use({ cpu: 1 }, () => {
        throw new Error('boom');
      }),
    ).rejects.toThrow('boom');
    expect(manager.grants()).toEqual([]);
  });

  it('throws the error of the function, even if the release fails too', async () => {
    const manager = await open();
    const failing = manager.use({ cpu: 1 }, () => {
      rmSync(manager.stateDir, { recursive: true });
      throw new Error('boom');
    });
    await expect(failing).rejects.toThrow('boom');
    expect((await errorOf(() => manager.use({ cpu: 1 }, undefined as never))).code).toBe(
      'ERR_INVALID_OPTION',
    );
  });
});

describe('pin of a grant', () => {
  it('moves every thread onto the CPUs; release restores the masks of the threads', async () => {
    const manager = await open({ reservedSystemCPUs: RESERVED });
    const grant = await manager.acquire({ cpu: 1 });
    const { moved, unmovable, guaranteed } = grant.pin();
    expect([moved.length, unmovable.length, guaranteed]).toEqual([threads().length, 0, false]);
    for (const thread of threads()) expect(thread.cpus.equals(grant.cpus)).toBe(true);
    await grant.release();
    for (const thread of threads()) expect(thread.cpus.equals(ALL)).toBe(true);
  });

  it('never restores CPUs that now belong to another grant', async () => {
    const topology = await discover();
    const manager = await open();
    const first = await manager.acquire({ cpu: 1 });
    pin(first.cpus, { threads: 'current' });
    // As if the thread had always been confined to CPUs that another grant takes meanwhile.
    const late = await open({ topology, stateDir: manager.stateDir });
    first.pin({ threads: 'current' });
    await first.unpin();
    expect(affinity().equals(manager.sharedPool())).toBe(true);
    expect(affinity().intersects(first.cpus)).toBe(false);
    late.close();
    await first.release();
    pin(ALL);
  });

  it('refuses threads that are pinned for another grant, except with replace', async () => {
    const topology = await discover();
    // A member of neither: two folders do not know each other.
    const options = { topology, sharedMember: false };
    const manager = await open({ stateDir: makeStateDir(), ...options });
    const other = await open({ stateDir: makeStateDir(), ...options });
    const [a, b] = [await manager.acquire({ cpu: 1 }), await other.acquire({ cpu: 1 })];
    a.pin({ threads: 'current' });
    const error = await errorOf(() => b.pin());
    expect(error).toMatchObject({ code: 'ERR_ALREADY_PINNED', details: { tid: process.pid, grant: a.uid } });
    expect(b.pin({ threads: 'current', replace: true }).moved.length).toBe(1);
    await a.release();
    expect(affinity().equals(b.cpus)).toBe(true);
    await b.release();
    expect(affinity().equals(ALL)).toBe(true);
  });

  it('is refused after the release, and on a simulated machine', async () => {
    const manager = await open();
    const grant = await manager.acquire({ cpu: 1 });
    await grant.release();
    await grant.release();
    expect((await errorOf(() => grant.pin())).code).toBe('ERR_GRANT_RELEASED');
    const simulated = await open({ topology: await discover({ synthetic: 'core:4 pu:1' }) });
    await simulated.use({ cpu: 1 }, async (other) => {
      expect((await errorOf(() => other.pin())).code).toBe('ERR_SIMULATED_MACHINE');
      expect((await errorOf(() => other.spawn('true'))).code).toBe('ERR_SIMULATED_MACHINE');
    });
  });
});

describe('a grant', () => {
  it('cannot be pinned once it was released by its id, nor by a manager that does not own it', async () => {
    const manager = await open();
    const grant = await manager.acquire({ cpu: 1 });
    await manager.release(grant.uid);
    expect((await errorOf(() => grant.pin())).code).toBe('ERR_GRANT_RELEASED');
    expect((await errorOf(() => grant.spawn('true'))).code).toBe('ERR_GRANT_RELEASED');
    expect((await errorOf(() => grant.unpin())).code).toBe('ERR_GRANT_RELEASED');
  });

  it('releases its threads when another manager releases it', async () => {
    const manager = await open();
    const grant = await manager.acquire({ cpu: 1, owner: 'persistent' });
    grant.pin({ threads: 'current' });
    const { decodeCheckpoint, encodeCheckpoint } = await import('../../lib/state/format/journal.js');
    const path = join(manager.stateDir, 'state.json');
    const { assignments, ...header } = decodeCheckpoint(readFileSync(path));
    writeFileSync(path, encodeCheckpoint({ ...header, assignments: { ...assignments, pods: [] } }));
    await grant.release();
    expect(affinity().equals(ALL)).toBe(true);
  });

  it('reports at its release which threads moved where', async () => {
    const manager = await open();
    const grant = await manager.acquire({ cpu: 1 });
    grant.pin({ threads: 'current' });
    const { moved, unmovable } = await grant.release();
    expect([moved.map(({ tid, cpus }) => [tid, String(cpus)]), unmovable]).toEqual([
      [[process.pid, String(ALL)]],
      [],
    ]);
  });
});

describe('release', () => {
  it('works by id, once, and lists the grants if the id is unknown', async () => {
    const manager = await open();
    const grant = await manager.acquire({ cpu: 1 });
    await manager.release(grant.uid);
    await grant.release();
    const error = await errorOf(() => manager.release(grant.uid));
    expect(error).toMatchObject({ code: 'ERR_UNKNOWN_GRANT', details: { value: grant.uid, valid: [] } });
  });

  it('frees a persistent grant, which outlives its maker, from any manager', async () => {
    const manager = await open();
    const grant = await manager.acquire({ cpu: 1, owner: 'persistent' });
    manager.close();
    const later = await open({ stateDir: manager.stateDir });
    expect(later.grants()).toMatchObject([
      { uid: grant.uid, alive: true, owner: { kind: 'persistent', pid: null } },
    ]);
    await later.grant(grant.uid).release();
    expect(later.grants()).toEqual([]);
  });
});

describe('the machine’s settings', () => {
  it('are recorded by the first opener, and every later one must agree or omit them', async () => {
    const first = await open({ reservedSystemCPUs: RESERVED });
    const { stateDir } = first;
    expect((await open({ stateDir })).settings().reservedSystemCPUs.toString()).toBe(RESERVED);
    await open({ stateDir, reservedSystemCPUs: RESERVED });
    const error = await errorOf(() =>
      open({ stateDir, reservedSystemCPUs: REST, strictCPUReservation: true }),
    );
    expect(error.code).toBe('ERR_CONFIG_CONFLICT');
    expect(error.details.differences).toEqual([
      { option: 'reservedSystemCPUs', asked: REST, recorded: RESERVED },
      { option: 'strictCPUReservation', asked: 'true', recorded: 'false' },
    ]);
  });

  it('can be changed for all, but must leave a shared CPU', async () => {
    const manager = await open();
    await manager.configure({ reservedSystemCPUs: RESERVED, strictCPUReservation: true });
    expect(String(manager.sharedPool())).toBe(REST);
    const error = await errorOf(() => manager.configure({ reservedSystemCPUs: ALL }));
    expect(error.code).toBe('ERR_CONFIG_CONFLICT');
    expect(manager.settings().reservedSystemCPUs.toString()).toBe(RESERVED);
    await manager.configure({ managedCPUs: REST, strictCPUReservation: false, reservedSystemCPUs: '' });
    expect(String(manager.sharedPool())).toBe(REST);
    await manager.configure({ managedCPUs: null });
    expect(manager.sharedPool().equals(ALL)).toBe(true);
  });

  it('must name CPUs that the machine has', async () => {
    const error = await errorOf(() => open({ reservedSystemCPUs: '60000' }));
    expect(error).toMatchObject({ code: 'ERR_INVALID_OPTION', details: { option: 'reservedSystemCPUs' } });
  });
});

describe('the state folder', () => {
  it('is made for its user alone, with files to match', async () => {
    const { stateDir, scope } = await open();
    expect(scope).toBe('private');
    expect(statSync(stateDir).mode & 0o7777).toBe(0o700);
    expect(statSync(join(stateDir, 'state.json')).mode & 0o777).toBe(0o600);
  });

  it('is refused as a link, as a file, below a file, below a missing folder, and if any user may write to it', async () => {
    const stateDir = makeStateDir();
    mkdirSync(join(stateDir, 'real'), { recursive: true });
    symlinkSync(join(stateDir, 'real'), join(stateDir, 'link'));
    writeFileSync(join(stateDir, 'file'), '');
    mkdirSync(join(stateDir, 'open'));
    chmodSync(join(stateDir, 'open'), 0o777);
    const reasons = {
      link: /link/,
      file: /not a folder/,
      'file/here': /is below \S*\/file, which is not a folder/,
      'file/deep/down': /is below \S*\/file, which is not a folder/,
      'nothing/here': /does not exist/,
      open: /every user may write/,
    };
    for (const [name, reason] of Object.entries(reasons)) {
      const error = await errorOf(() => openManager({ stateDir: join(stateDir, name) }));
      expect([error.code, error.message]).toEqual(['ERR_STATE_FOLDER', expect.stringMatching(reason)]);
    }
    expect(readdirSync(join(stateDir, 'open'))).toEqual([]);
  });

  it.runIf(process.getuid?.() === 0)('is refused if it belongs to another user', async () => {
    const stateDir = makeStateDir();
    mkdirSync(stateDir, { recursive: true });
    chownSync(stateDir, 12_345, 12_345);
    expect(await errorOf(() => openManager({ stateDir }))).toMatchObject({
      code: 'ERR_STATE_FOLDER',
      message: expect.stringContaining('user 12345'),
    });
  });

  it('is recovered if the state file was removed, or the whole folder', async () => {
    const manager = await open();
    const grant = await manager.acquire({ cpu: 1 });
    unlinkSync(join(manager.stateDir, 'state.json'));
    expect(manager.grants().map(({ uid }) => uid)).toEqual([grant.uid]);
    const opened = async () => (await open({ stateDir: manager.stateDir })).grants().map(({ uid }) => uid);
    expect(await opened()).toEqual([grant.uid]);
    rmSync(manager.stateDir, { recursive: true });
    expect(await opened()).toEqual([grant.uid]);
  });

  it('archives the grants of an earlier boot', async () => {
    const manager = await open({ reservedSystemCPUs: RESERVED });
    await manager.acquire({ cpu: 1, owner: 'persistent', name: 'old' });
    const path = join(manager.stateDir, 'state.json');
    const { decodeCheckpoint, encodeCheckpoint } = await import('../../lib/state/format/journal.js');
    const checkpoint = decodeCheckpoint(readFileSync(path));
    writeFileSync(path, encodeCheckpoint({ ...checkpoint, bootId: 'another-boot' }));
    const later = await open({ stateDir: manager.stateDir });
    expect(later.grants()).toEqual([]);
    expect(later.settings().reservedSystemCPUs.toString()).toBe(RESERVED);
    expect(later.generation()).toBeGreaterThan(checkpoint.generation);
    const [archived] = readdirSync(join(manager.stateDir, 'archive'));
    expect(
      decodeCheckpoint(readFileSync(join(manager.stateDir, 'archive', archived!))).assignments.pods[0]!.name,
    ).toBe('old');
  });

  it('is a new state once it was removed and made again', async () => {
    const manager = await open();
    await manager.use({ cpu: 1 }, () => {});
    rmSync(manager.stateDir, { recursive: true });
    const again = await open({ stateDir: manager.stateDir });
    const grant = await again.acquire({ cpu: 1 });
    const other = spawnSync(
      process.execPath,
      [
        '--input-type=module',
        '-e',
        `import { openManager } from './dist/index.js';
         const manager = await openManager({ stateDir: ${JSON.stringify(manager.stateDir)} });
         console.log(manager.grants().map(({ uid, alive }) => uid + ' ' + alive).join());`,
      ],
      { encoding: 'utf8' },
    );
    expect(other.stdout.trim()).toBe(`${grant.uid} true`);
    await grant.release();
  });

  it('has one name, whatever its path', async () => {
    const { stateDir } = await open();
    const link = join(stateDir, '..', 'link');
    symlinkSync(join(stateDir, '..'), link);
    const other = await open({ stateDir: `${link}//state/../state/` });
    expect(other.stateDir).toBe(stateDir);
  });

  it('opens any number of times without further descriptors', async () => {
    const { stateDir } = await open();
    const fds = () => readdirSync('/proc/self/fd').length;
    const before = fds();
    for (let i = 0; i < 100; i++) (await openManager({ stateDir })).close();
    expect(fds()).toBeLessThanOrEqual(before + 2);
  });

  it('is not made for refused options', async () => {
    const stateDir = makeStateDir();
    await errorOf(() => openManager({ stateDir, reservedSystemCPUs: '60000' }));
    await errorOf(() => openManager({ stateDir, reservedSystemCPUs: ALL, strictCPUReservation: true }));
    expect(existsSync(stateDir)).toBe(false);
  });

  it('belongs to the real machine or to a simulated one, never to both', async () => {
    const topology = await discover({ synthetic: 'core:4 pu:1' });
    const [real, simulated] = [await open(), await open({ topology })];
    expect((await errorOf(() => open({ stateDir: real.stateDir, topology }))).code).toBe(
      'ERR_SIMULATED_MACHINE',
    );
    expect((await errorOf(() => open({ stateDir: simulated.stateDir }))).code).toBe('ERR_SIMULATED_MACHINE');
  });

  it.runIf(canMount)('is refused on a read-only file system', async () => {
    const stateDir = makeStateDir();
    mkdirSync(stateDir, { recursive: true });
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'ro,mode=0700', 'tmpfs', stateDir]);
    onTestFinished(() => void execFileSync('umount', ['-l', stateDir]));
    expect(await errorOf(() => openManager({ stateDir }))).toMatchObject({
      code: 'ERR_STATE_FOLDER',
      message: expect.stringContaining('read-only'),
    });
  });

  it('keeps its settings in two files', async () => {
    const manager = await open();
    await manager.configure({ strictCPUReservation: true });
    await manager.use({ cpu: 1 }, () => {});
    for (const name of ['state.json', 'state.copy.json']) {
      const { settings } = decodeMembers(readFileSync(join(manager.stateDir, name)));
      expect(settings.strictCPUReservation).toBe(true);
    }
    expect(existsSync(join(manager.stateDir, 'state.json.new'))).toBe(false);
  });
});

describe('openManager', () => {
  it('refuses invalid options, and names the nearest valid one', async () => {
    const bad: [object, RegExp][] = [
      [{ statedir: '/x' }, /did you mean "stateDir"/],
      [{ topologyManagerPolicy: 'none' }, /did you mean "policy"/],
      [{ topologyManagerScope: 'pod' }, /did you mean "scope"/],
      [{ policy: 'strict' }, /^policy must be/],
      [{ scope: 'node' }, /^scope must be/],
      [{ stateDir: 'relative' }, /absolute path/],
      [{ stateDir: 5 }, /absolute path/],
      [{ lockTimeoutMs: -1 }, /milliseconds/],
      [{ topology: {} }, /discover\(\)/],
      [{ reservedSystemCPUs: 3 }, /a CpuSet or a list/],
      [{ strictCPUReservation: 'yes' }, /true or false/],
    ];
    for (const [options, message] of bad) {
      const error = await errorOf(() => openManager(options));
      expect([error.code, error.message]).toEqual(['ERR_INVALID_OPTION', expect.stringMatching(message)]);
    }
    expect((await errorOf(() => openManager({ reservedSystemCPUs: '1-' }))).code).toBe('ERR_INVALID_LIST');
  });

  it('keeps a simulated machine away from the real one’s state', async () => {
    const topology = await discover({ synthetic: 'core:4 pu:1' });
    const stateDir = MACHINE_STATE_DIR;
    expect((await errorOf(() => openManager({ topology, stateDir }))).code).toBe('ERR_SIMULATED_MACHINE');
  });

  it('keeps the state of a simulated machine in memory, one for each manager, unless a folder is given', async () => {
    const topology = await discover({ synthetic: 'core:4 pu:1' });
    const manager = await openManager({ topology, reservedSystemCPUs: '0' });
    expect([manager.scope, manager.stateDir, manager.generation()]).toEqual(['memory', '', 1]);
    const [first, second] = await Promise.all([manager.acquire({ cpu: 2 }), manager.acquire({ cpu: 1 })]);
    expect([first.cpus, second.cpus, manager.sharedPool()].map(String)).toEqual(['1-2', '3', '0']);
    expect((await openManager({ topology })).grants()).toEqual([]);
    await first.release();
    expect(manager.grants().map(({ uid, alive }) => [uid, alive])).toEqual([[second.uid, true]]);
    const controller = new AbortController();
    controller.abort();
    expect((await errorOf(() => manager.acquire({ cpu: 1, signal: controller.signal }))).name).toBe(
      'AbortError',
    );
  });

  it('may be called twice in a process: both see each other’s grants', async () => {
    const one = await open({ reservedSystemCPUs: RESERVED });
    const two = await open({ stateDir: one.stateDir });
    const grant = await one.acquire({ cpu: ALL.size - 1 });
    expect(String(two.sharedPool())).toBe(RESERVED);
    expect((await errorOf(() => two.acquire({ cpu: 1 }))).code).toBe('ERR_INSUFFICIENT_CPUS');
    await two.grant(grant.uid).release();
    expect(one.sharedPool().equals(ALL)).toBe(true);
  });

  it('never shows an old state, however quickly the file is replaced', async () => {
    const topology = await discover({ synthetic: 'core:8 pu:1' });
    for (const stateDir of [makeStateDir(), makeStateDir('/dev/shm')]) {
      const [writer, reader] = [await open({ topology, stateDir }), await open({ topology, stateDir })];
      for (let round = 0; round < 100; round++) {
        const before = reader.generation();
        // Enough commits for the file system to use the first inode again, with the same size at
        // the end.
        for (let commits = 0; commits < 1 + (round % 4); commits++) {
          const grant = await writer.acquire({ cpu: 1 });
          expect(reader.sharedPool().equals(writer.sharedPool())).toBe(true);
          await grant.release();
        }
        expect(reader.generation()).toBe(before + 2 * (1 + (round % 4)));
      }
    }
  });

  it('does nothing after close, and leaves the grants', async () => {
    const manager = await open();
    const grant = await manager.acquire({ cpu: 1 });
    manager.close();
    expect((await errorOf(() => manager.acquire({ cpu: 1 }))).code).toBe('ERR_MANAGER_CLOSED');
    expect(() => manager.sharedPool()).toThrow(expect.objectContaining({ code: 'ERR_MANAGER_CLOSED' }));
    expect((await open({ stateDir: manager.stateDir })).grants()).toHaveLength(1);
    await grant.release();
  });
});
