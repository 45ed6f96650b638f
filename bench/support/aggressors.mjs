// Processes that take any CPU time they get, and what keeps them away from a CPU.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CpuSet } from '../../dist/index.js';
import { removeCgroups } from './remove-cgroups.mjs';

/** The cgroups of measurements are below it. */
export const cgroupRoot = `/numalign-bench-${process.pid}`;
const slice = `${cgroupRoot}-slice`;
const isV2 = existsSync('/sys/fs/cgroup/cgroup.controllers');

/** A command that spins. */
export const SPIN = ['sh', '-c', 'while :; do :; done'];

/**
 * Calls `action` with a new state folder and the pids of `count` processes of a command, which run
 * until `action` ends.
 */
export async function besideAggressors(count, [program, ...args], action) {
  const stateDir = mkdtempSync(join(tmpdir(), 'numalign-bench-'));
  const aggressors = Array.from({ length: count }, () => spawn(program, args, { stdio: 'ignore' }));
  try {
    await Promise.all(aggressors.map((each) => once(each, 'spawn')));
    return await action(
      stateDir,
      aggressors.map(({ pid }) => pid),
    );
  } finally {
    for (const each of aggressors) {
      const ended = once(each, 'exit');
      each.kill('SIGKILL');
      await ended;
    }
    rmSync(stateDir, { recursive: true });
    for (const root of [cgroupRoot, slice]) removeCgroups(root);
  }
}

/**
 * Puts processes into a cgroup with only these CPUs, as AllowedCPUs= of a systemd slice does.
 * Returns why not, if that is not allowed here.
 */
export function putIntoSlice(pids, cpus) {
  const folder = isV2 ? `/sys/fs/cgroup${slice}` : `/sys/fs/cgroup/cpuset${slice}`;
  try {
    if (isV2) writeFileSync('/sys/fs/cgroup/cgroup.subtree_control', '+cpuset');
    mkdirSync(folder);
    writeFileSync(`${folder}/cpuset.cpus`, CpuSet.from(cpus).toString());
    if (!isV2) writeFileSync(`${folder}/cpuset.mems`, readFileSync(`${folder}/../cpuset.mems`, 'utf8'));
    for (const pid of pids) writeFileSync(`${folder}/cgroup.procs`, String(pid));
  } catch (error) {
    return error.message;
  }
}
