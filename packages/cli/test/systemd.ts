// systemd without the machine's own instance: its programs, and an instance in namespaces.
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, rmdirSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { onTestFinished } from 'vitest';
import { newFolder, until } from './numalign.js';

const SYSTEMD = '/lib/systemd/systemd';
// In cgroup v1, if the machine was not booted with systemd; its groups are in v2 too, if that is there.
const CGROUPS = '/sys/fs/cgroup/systemd';
const ALL_CGROUPS = [CGROUPS, '/sys/fs/cgroup/unified'].filter((path) => existsSync(path));

export const hasSystemd = spawnSync('systemd-analyze', ['--version']).status === 0;
/** It needs namespaces, and root must be able to make groups. */
export const isRoot = process.getuid!() === 0;
export const canRunUnits =
  isRoot && existsSync(SYSTEMD) && existsSync(CGROUPS) && !existsSync('/run/systemd/system');

/** systemd's complaints about units, by the names of their files. */
export function verify(units: Readonly<Record<string, string>>): string {
  const folder = newFolder();
  for (const [name, text] of Object.entries(units)) writeFileSync(join(folder, name), text);
  const names = Object.keys(units).map((name) => `./${name}`);
  const { status, stderr } = spawnSync('systemd-analyze', ['verify', '--man=no', ...names], {
    cwd: folder,
    encoding: 'utf8',
  });
  return status === 0 ? stderr : `${status}: ${stderr}`;
}

/** What `systemd-analyze security` says of a unit, such as `9.6 UNSAFE`. */
export function exposureOf(name: string, text: string): string | undefined {
  const cwd = newFolder();
  writeFileSync(join(cwd, name), text);
  const args = ['security', '--offline=yes', `./${name}`];
  const { stdout } = spawnSync('systemd-analyze', args, { cwd, encoding: 'utf8' });
  return /Overall exposure level for .*: (\S+ \w+)/.exec(stdout)?.[1];
}

/** Runs a unit in an instance of systemd until the test is over. */
export function runUnit(name: string, text: string): void {
  const folder = newFolder();
  const units = join(folder, 'systemd/user');
  mkdirSync(units, { recursive: true });
  writeFileSync(join(units, name), text);
  // It only runs if the machine looks as if it had booted with it, and not as the first process of
  // a namespace, which it takes for a machine's.
  // It makes groups in the one that it is in.
  const groups = ALL_CGROUPS.map((path) => join(path, `numalign-test-${basename(folder)}`));
  for (const group of groups) mkdirSync(group);
  const enter = groups.map((group) => `echo 0 > ${group}/cgroup.procs`).join(' && ');
  const boot = `${enter} && mount -t tmpfs none /run/systemd && mkdir /run/systemd/system && ${SYSTEMD} --user --unit=${name}; true`;
  const child = spawn(
    'unshare',
    ['--mount', '--pid', '--fork', '--kill-child', '--mount-proc', 'sh', '-c', boot],
    {
      env: {
        PATH: process.env.PATH,
        XDG_RUNTIME_DIR: folder,
        XDG_CONFIG_HOME: folder,
        // No generated units of the machine.
        SYSTEMD_GENERATOR_PATH: folder,
        SYSTEMD_ENVIRONMENT_GENERATOR_PATH: folder,
      },
      stdio: 'ignore',
    },
  );
  const hasEnded = new Promise((resolve) => child.once('exit', resolve));
  onTestFinished(async () => {
    child.kill('SIGKILL');
    await hasEnded;
    // The processes of the namespace end after it.
    for (const group of groups) await until(() => isRemoved(group), `the end of ${group}`);
  });
}

/** Whether a group is gone, with those in it. */
function isRemoved(cgroup: string): boolean {
  try {
    for (const entry of readdirSync(cgroup, { withFileTypes: true }))
      if (entry.isDirectory() && !isRemoved(join(cgroup, entry.name))) return false;
    rmdirSync(cgroup);
    return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    // A systemd that ends removes its own.
    if (code === 'ENOENT') return true;
    if (code === 'EBUSY') return false;
    throw error;
  }
}
