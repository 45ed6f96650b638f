// needs: restores
// State folders that some or all users cannot use: clear errors, the old state intact. And folders
// seen from a user namespace.
import { execFileSync, spawnSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statfsSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';
import { affinity } from '../../lib/entries/diagnostics.js';
import { discover } from '../../lib/entries/topology.js';
import { CpuSet, openManager } from '../../lib/index.js';
import { Agent } from '../support/agent.js';
import { errorOf } from '../support/error-of.js';
import { canMount } from '../support/rights.js';
import { makeStateDir } from '../support/state-dir.js';
import { membersOf, ownerMembersOf } from '../support/state-text.js';
import { AGENT, asUser, canBeStranger, forStrangers } from '../support/strangers.js';
import { readHighest } from '../torture/state-file.mjs';

const SECCOMP = fileURLToPath(new URL('../support/seccomp.py', import.meta.url));
const isRoot = process.getuid?.() === 0;
const canUnshare = isRoot && spawnSync('unshare', ['-Ur', 'true']).status === 0;
const ALL = affinity();
const RESERVED = String(ALL.first);
const REST = ALL.difference(CpuSet.of(ALL.first!));
const F_OFD_SETLK = 37;
const TMPFS_MAGIC = 0x01021994;

// A user in the ACL.
const NAMED = 65533;

/** The default ACL of a folder, with these rights in each entry; see acl(5). */
function setDefaultAcl(folder: string, rights: number): void {
  // Owner, user, group, mask, others, as in linux/posix_acl_xattr.h.
  const entries = [0x01, 0x02, 0x04, 0x10, 0x20].map(
    (tag) => `(${tag}, ${rights}, ${tag === 2 ? NAMED : -1})`,
  );
  const script = `
import os, struct, sys
acl = struct.pack('<I', 2) + b''.join(struct.pack('<HHi', *entry) for entry in [${entries}])
os.setxattr(sys.argv[1], 'system.posix_acl_default', acl)`;
  execFileSync('python3', ['-c', script, folder], { stdio: 'pipe' });
}

function canSetAcl(): boolean {
  const folder = mkdtempSync(join(tmpdir(), 'numalign-test-'));
  try {
    setDefaultAcl(folder, 7);
    return true;
  } catch {
    return false;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

describe('a state folder', () => {
  it.each(['EINVAL', 'ENOLCK', 'EOPNOTSUPP'])(
    'on a file system that answers %s to locks is refused',
    async (errno) => {
      const agent = new Agent(['python3', SECCOMP, `${errno}=fcntl:1=${F_OFD_SETLK}`, '--']);
      const { error } = await agent.ask('open', { stateDir: makeStateDir() });
      expect(error).toMatchObject({
        code: 'ERR_STATE_FOLDER',
        message: expect.stringContaining('no open-file-description locks'),
      });
    },
  );

  // The kernel makes a file system read-only by itself after an error of its device. It does not do
  // so on request while a file is open for writing there.
  it('that becomes read-only grants nothing, and its state can still be read', async () => {
    const stateDir = makeStateDir();
    const topology = await discover({ synthetic: 'core:4 pu:1' });
    const manager = await openManager({ stateDir, topology });
    const { uid } = await manager.acquire({ cpu: 1, owner: 'persistent' });
    const before = readFileSync(join(stateDir, 'state.json'), 'utf8');
    const agent = new Agent(['python3', SECCOMP, 'EROFS=pwrite64', '--']);
    await agent.tell('open', { stateDir, simulate: 'core:4 pu:1' });
    const grant = { cpu: 1, owner: 'persistent' };
    for (const { error } of [await agent.ask('acquire', grant), await agent.ask('release', { uid })]) {
      expect(error).toMatchObject({
        code: 'ERR_STATE_FOLDER',
        message: expect.stringContaining('read-only'),
      });
    }
    expect((await agent.tell('grants')).map((each: { uid: string }) => each.uid)).toEqual([uid]);
    expect(readFileSync(join(stateDir, 'state.json'), 'utf8')).toBe(before);
    await manager.release(uid);
  });

  // A folder in memory needs no sync.
  it.skipIf(statfsSync(tmpdir()).type === TMPFS_MAGIC)(
    'of which a device syncs nothing keeps a line that others may have read, and takes none after it',
    async () => {
      const stateDir = makeStateDir();
      const topology = await discover({ synthetic: 'core:4 pu:1' });
      const manager = await openManager({ stateDir, topology });
      await manager.acquire({ cpu: 1 });
      const agent = new Agent(['python3', SECCOMP, 'EIO=fdatasync', 'EIO=fsync', '--']);
      await agent.tell('open', { stateDir, simulate: 'core:4 pu:1' });
      const { uid } = await agent.tell('acquire', { cpu: 1, owner: 'persistent' });
      const { generation } = membersOf(stateDir);
      const { error } = await agent.ask('release', { uid });
      expect(error).toMatchObject({ code: 'ERR_SYSCALL', message: expect.stringContaining('cannot sync') });
      expect(manager.grants().map((each) => each.uid)).toContain(uid);
      expect(membersOf(stateDir).generation).toBe(generation);
      expect(readHighest(stateDir)).toBe(generation);
      await manager.release(uid);
    },
  );

  it.runIf(canMount)('that was made read-only is refused', async () => {
    const stateDir = makeStateDir();
    mkdirSync(stateDir, { recursive: true });
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'mode=0700', 'tmpfs', stateDir]);
    onTestFinished(() => void execFileSync('umount', ['-l', stateDir]));
    execFileSync('mount', ['-o', 'remount,ro', stateDir]);
    expect(await errorOf(() => openManager({ stateDir }))).toMatchObject({
      code: 'ERR_STATE_FOLDER',
      message: expect.stringContaining('read-only'),
    });
  });

  it.runIf(canMount)('on a full disk keeps its grants, and its owners’ files agree', async () => {
    const stateDir = makeStateDir();
    mkdirSync(stateDir, { recursive: true });
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=96k,mode=0700', 'tmpfs', stateDir]);
    onTestFinished(() => void execFileSync('umount', ['-l', stateDir]));
    const manager = await openManager({ stateDir });
    const grant = await manager.acquire({ cpu: 1, name: 'x'.repeat(200) });
    const state = () => membersOf(stateDir).pods;
    const before = state();
    const ballast = join(stateDir, 'ballast');
    try {
      writeFileSync(ballast, Buffer.alloc(1 << 20));
    } catch {
      // The disk is full to the last byte.
    }
    // More than a page, of which a part may be free in a file.
    const containers = Array.from({ length: 30 }, (_, i) => ({ name: `app-${i}` }));
    for (const owner of ['process', 'persistent'] as const) {
      const error = await errorOf(() => manager.admit({ name: 'y'.repeat(200), containers }, { owner }));
      expect([error.code, error.errnoName]).toEqual(['ERR_SYSCALL', 'ENOSPC']);
    }
    expect(state()).toEqual(before);
    expect(ownerMembersOf(stateDir, before[0].owner.uuid).pods).toEqual(before);
    // The grants are not lost with the state either.
    writeFileSync(join(stateDir, 'state.json'), 'nonsense');
    expect(manager.grants().map(({ uid }) => uid)).toEqual([grant.uid]);
    rmSync(ballast);
    await manager.configure({});
    expect(manager.grants().map(({ uid }) => uid)).toEqual([grant.uid]);
    await grant.release();
  });

  it.runIf(canMount)('on a full disk keeps no request waiting behind one that could not wait', async () => {
    const stateDir = makeStateDir();
    mkdirSync(stateDir, { recursive: true });
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=128k,mode=0700', 'tmpfs', stateDir]);
    onTestFinished(() => void execFileSync('umount', ['-l', stateDir]));
    const topology = await discover({ synthetic: 'core:3 pu:1' });
    const manager = await openManager({ stateDir, topology });
    const held = await manager.acquire({ cpu: 1 });
    const refused = new Agent();
    await refused.tell('open', { stateDir, simulate: 'core:3 pu:1' });
    await refused.tell('acquire', { cpu: 1 });
    const ballast = join(stateDir, 'ballast');
    try {
      writeFileSync(ballast, Buffer.alloc(1 << 20));
    } catch {
      // The disk is full to the last byte.
    }
    expect((await refused.ask('acquire', { cpu: 1, wait: true })).error?.message).toContain('No space left');
    rmSync(ballast);
    const waiting = manager.acquire({ cpu: 1, wait: true, signal: AbortSignal.timeout(20_000) });
    await held.release();
    await (await waiting).release();
  });

  it.each(['lock', 'owners'])('whose %s is a link is refused, and the link is not followed', async (name) => {
    const stateDir = makeStateDir();
    mkdirSync(stateDir, { recursive: true, mode: 0o700 });
    symlinkSync('/etc/hostname', join(stateDir, name));
    const before = readFileSync('/etc/hostname', 'utf8');
    expect(await errorOf(() => openManager({ stateDir }))).toMatchObject({
      code: 'ERR_STATE_FOLDER',
      message: expect.stringContaining(name),
    });
    expect(readFileSync('/etc/hostname', 'utf8')).toBe(before);
  });

  it.runIf(canBeStranger).each(['777', '277', '000'])(
    'made by a process with the umask %s is open to its owner alone, also later',
    async (umask) => {
      const base = dirname(makeStateDir());
      chownSync(base, 65534, 65534);
      const stateDir = join(base, 'state');
      const agent = forStrangers(AGENT);
      const script = `umask ${umask} && exec "$0" "$@"`;
      const first = new Agent([...asUser(65534), 'sh', '-c', script], agent);
      await first.tell('open', { stateDir, simulate: 'core:4 pu:1' });
      await first.tell('acquire', { cpu: 1, owner: 'persistent' });
      await first.kill();
      const second = new Agent(asUser(65534), agent);
      await second.tell('open', { stateDir, simulate: 'core:4 pu:1' });
      expect((await second.tell('acquire', { cpu: 1 })).cpus).toBe('1');
      const modes = ['', 'lock', 'owners'].map((name) => lstatSync(join(stateDir, name)).mode & 0o777);
      expect(modes).toEqual([0o700, 0o600, 0o700]);
      await second.kill();
    },
  );

  it.runIf(canBeStranger && canSetAcl()).each([
    ['open', 7],
    ['closed', 0],
  ])('made where an ACL makes all new files %s is open to its owner alone, also later', async (_, rights) => {
    const base = dirname(makeStateDir());
    chownSync(base, 65534, 65534);
    chmodSync(base, 0o755);
    setDefaultAcl(base, rights);
    const stateDir = join(base, 'state');
    const agent = forStrangers(AGENT);
    const first = new Agent(asUser(65534), agent);
    await first.tell('open', { stateDir, simulate: 'core:4 pu:1' });
    await first.tell('acquire', { cpu: 1, owner: 'persistent' });
    await first.kill();
    const second = new Agent(asUser(65534), agent);
    await second.tell('open', { stateDir, simulate: 'core:4 pu:1' });
    expect((await second.tell('acquire', { cpu: 1 })).cpus).toBe('1');
    // What the group may do is what the ACL's mask leaves to all but the owner.
    const modes = ['', 'lock', 'state.json', 'owners'].map((name) => lstatSync(join(stateDir, name)).mode);
    expect(modes.map((mode) => mode & 0o777)).toEqual([0o700, 0o600, 0o600, 0o700]);
    expect(spawnSync('env', [...asUser(NAMED), 'test', '-x', stateDir]).status).toBe(1);
    await second.kill();
  });

  it.runIf(canBeStranger)('is refused if it or its files are closed to this user', async () => {
    const stateDir = makeStateDir();
    chmodSync(join(stateDir, '..'), 0o755);
    mkdirSync(stateDir);
    chmodSync(stateDir, 0o750);
    const stranger = ['setpriv', '--reuid=12345', '--clear-groups', '--bounding-set=-all', '--inh-caps=-all'];
    const agent = forStrangers(AGENT);
    const { error } = await new Agent(stranger, agent).ask('open', { stateDir });
    expect(error).toMatchObject({
      code: 'ERR_STATE_FOLDER',
      message: expect.stringContaining('permission denied'),
    });
    // The folder belongs to another user: a closed file in it proves nothing about the file.
    await openManager({ stateDir });
    chmodSync(stateDir, 0o755);
    chmodSync(join(stateDir, 'owners'), 0o777);
    chmodSync(join(stateDir, 'lock'), 0o666);
    chmodSync(join(stateDir, 'state.json'), 0o600);
    const second = await new Agent(stranger, agent).ask('open', { stateDir });
    expect(second.error).toMatchObject({ code: 'ERR_STATE_FOLDER' });
  });
});

describe.runIf(canUnshare && ALL.size > 1)('processes in different user namespaces', () => {
  const inner = ['unshare', '-Ur', '--kill-child=SIGKILL', '-f'];

  it('never get the same CPU, and see each other die', async () => {
    const stateDir = makeStateDir();
    const [outside, inside] = [new Agent(), new Agent(inner)];
    // No shared members: they would have to answer each other within a second.
    const options = { stateDir, reservedSystemCPUs: RESERVED, sharedMember: false };
    await outside.tell('open', options);
    await inside.tell('open', options);
    const answers = await Promise.all(
      [outside, inside].map((agent) => agent.ask('acquire', { cpu: REST.size })),
    );
    expect(answers.map(({ error }) => error?.code).sort()).toEqual(['ERR_INSUFFICIENT_CPUS', undefined]);
    const [winner, loser] = answers[0]!.value ? [outside, inside] : [inside, outside];
    expect(await loser.tell('grants')).toMatchObject([{ alive: true }]);
    await winner.kill();
    const end = Date.now() + 10_000;
    while ((await loser.tell('grants'))[0]?.alive && Date.now() < end)
      await new Promise((r) => setTimeout(r, 20));
    expect((await loser.tell('acquire', { cpu: REST.size })).cpus).toBe(String(REST));
  });

  // As a container sees root's folder.
  function folderOfNobodyKnown(fileSystem?: string): string {
    const stateDir = makeStateDir(fileSystem);
    mkdirSync(stateDir, { recursive: true });
    chownSync(stateDir, 12_345, 0);
    chmodSync(stateDir, 0o2770);
    return stateDir;
  }

  it('may not use a folder of an unnamed owner if any user could have made it', async () => {
    const stateDir = folderOfNobodyKnown();
    expect((await new Agent(inner).ask('open', { stateDir })).error).toMatchObject({
      code: 'ERR_STATE_FOLDER',
      message: expect.stringContaining('may be a stranger’s: every user may write to'),
    });
  });

  it('may use a folder of an unnamed owner, unless any user can write it', async () => {
    const stateDir = folderOfNobodyKnown('/run');
    await new Agent(inner).tell('open', { stateDir });
    expect((await new Agent().ask('open', { stateDir })).error).toMatchObject({ code: 'ERR_STATE_FOLDER' });
    chmodSync(stateDir, 0o2777);
    expect((await new Agent(inner).ask('open', { stateDir })).error).toMatchObject({
      code: 'ERR_STATE_FOLDER',
      message: expect.stringContaining('every user may write'),
    });
  });
});
