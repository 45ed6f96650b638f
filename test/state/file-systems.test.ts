// needs: agents
// A state folder on each file system: the kernel lists the locks of removed files, and numalign
// finds them. Real mounts, of images in files.
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { Agent } from '../support/agent.js';
import { canMount, canUnshare } from '../support/rights.js';
import { makeStateDir } from '../support/state-dir.js';

const MACHINE = 'core:4 pu:1';

// Above the least of each.
const IMAGE_BYTES = '400M';

/** Mounts a file system of this type at `at`; the folder of a state is made below the result. */
const MOUNTS: Record<string, string> = {
  tmpfs: 'mount -t tmpfs none mnt',
  ext4: 'mkfs.ext4 -q image; mount -o loop image mnt',
  xfs: 'mkfs.xfs -q image; mount -o loop image mnt',
  'a btrfs subvolume':
    'mkfs.btrfs -q image; mount -o loop image mnt; btrfs subvolume create mnt/sub >/dev/null; ln -s mnt/sub use',
  'a bind mount of a btrfs subvolume':
    'mkfs.btrfs -q image; mount -o loop image mnt; btrfs subvolume create mnt/sub >/dev/null; mkdir use; mount --bind mnt/sub use',
  'an overlay of two file systems':
    'mount -t tmpfs none mnt; mkdir mnt/upper mnt/work lower use; mount -t overlay none -o lowerdir=lower,upperdir=mnt/upper,workdir=mnt/work use',
};

/** Why this file system cannot be mounted here; undefined if it can. */
function obstacle(script: string): string | undefined {
  if (!canMount) return 'mounting takes root';
  const tool = /mkfs\.(\w+)/.exec(script);
  if (!tool) return undefined;
  if (spawnSync('sh', ['-c', `command -v ${tool[0]}`]).status !== 0) return `${tool[0]} is not installed`;
  if (!existsSync('/dev/loop-control')) return 'there are no loop devices';
  spawnSync('modprobe', [tool[1]!]);
  const known = execFileSync('cat', ['/proc/filesystems'], { encoding: 'utf8' });
  return new RegExp(`\\t${tool[1]}$`, 'm').test(known) ? undefined : `the kernel has no ${tool[1]}`;
}

function mounted(script: string): string {
  const base = mkdtempSync(join(tmpdir(), 'numalign-test-'));
  mkdirSync(join(base, 'mnt'));
  onTestFinished(() => {
    for (const name of ['use', 'mnt']) spawnSync('umount', ['--lazy', join(base, name)]);
    rmSync(base, { recursive: true, force: true });
  });
  execFileSync('sh', ['-ec', `truncate -s ${IMAGE_BYTES} image; ${script}`], { cwd: base, stdio: 'pipe' });
  return existsSync(join(base, 'use')) ? join(base, 'use') : join(base, 'mnt');
}

describe.each(Object.entries(MOUNTS))('a state folder on %s', (_, script) => {
  const why = obstacle(script);
  it.skipIf(why)(
    `keeps a stopped owner’s CPUs though its file was removed${why ? `: ${why}` : ''}`,
    async () => {
      const stateDir = join(mounted(script), 'state');
      const [owner, next] = [new Agent(), new Agent()];
      await owner.tell('open', { stateDir, simulate: MACHINE });
      await owner.tell('acquire', { cpu: 3 });
      owner.process.kill('SIGSTOP');
      for (const name of readdirSync(join(stateDir, 'owners'))) rmSync(join(stateDir, 'owners', name));
      await next.tell('open', { stateDir, simulate: MACHINE });
      expect((await next.ask('acquire', { cpu: 1 })).error?.code).toBe('ERR_INSUFFICIENT_CPUS');
      await owner.kill();
      expect((await next.tell('acquire', { cpu: 3 })).cpus).toBe('0-2');
      await next.kill();
    },
  );
});

it.runIf(canUnshare)(
  'a folder whose locks the kernel does not list is refused, and how it can be used',
  async () => {
    const hidden = 'mount -t tmpfs none /proc/$$/fdinfo && exec "$0" "$@"';
    const agent = new Agent(['unshare', '-m', 'sh', '-c', hidden]);
    const stateDir = makeStateDir('/dev/shm');
    const opened = await agent.ask('open', { stateDir, simulate: MACHINE });
    const { error } = opened.error ? opened : await agent.ask('acquire', { cpu: 1 });
    expect(error?.code).toBe('ERR_STATE_FOLDER');
    expect(error?.message).toContain(`${stateDir} cannot be used: its file system (tmpfs) has no`);
    expect(error?.message).toContain('use a folder on tmpfs, ext4, xfs or btrfs');
  },
);
