// Cpusets of cgroup v1 in place of those of v2.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const UNIFIED = '/sys/fs/cgroup';
/** The kernel still counts cgroups and processes for a moment after their end. */
const PAUSE_MS = 100;
const MOST_TRIES = 600;

const pause = () => new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
const mount = (point) => spawnSync('mount', ['-t', 'cgroup', '-o', 'cpuset', 'cpuset', point]);

/**
 * Mounts them, and returns the mount point. REQUIRES: of the cgroups of v2 only the root enables
 * the controller.
 */
export async function mountCpusetV1() {
  const point = mkdtempSync(join(tmpdir(), 'numalign-cpuset-'));
  writeFileSync(join(UNIFIED, 'cgroup.subtree_control'), '-cpuset');
  for (let tries = 0; ; tries++) {
    const { status, stderr } = mount(point);
    if (status === 0) return point;
    if (tries === MOST_TRIES) throw new Error(`mount: ${stderr}`);
    await pause();
  }
}

/** Gives the controller back to cgroup v2. REQUIRES: no cgroup is left below `point`. */
export async function unmountCpusetV1(point) {
  const isBack = () =>
    readFileSync(join(UNIFIED, 'cgroup.controllers'), 'utf8').trim().split(' ').includes('cpuset');
  for (let tries = 0, isMounted = true; ; tries++) {
    if (isMounted) isMounted = spawnSync('umount', [point]).status !== 0;
    if (!isMounted && isBack()) break;
    if (tries === MOST_TRIES) throw new Error('the controller cpuset does not come back to cgroup v2');
    await pause();
    // A hierarchy ends with a mount that has no cgroup. One that was just removed may count as such.
    if (!isMounted && !isBack()) isMounted = mount(point).status === 0;
  }
  rmdirSync(point);
  writeFileSync(join(UNIFIED, 'cgroup.subtree_control'), '+cpuset');
}
