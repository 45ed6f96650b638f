// The cgroups of one runtime and its containers: one group in each hierarchy of the machine, with
// all else below.
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const MOUNTS = '/sys/fs/cgroup';
/** Of the group's children the one in which the runtime and its shims run. */
export const RUNTIME_GROUP = 'runtime';
// A dead process leaves its cgroup a moment later.
const PATIENCE_MS = 5000;

/** Each hierarchy's root: one of version 2, or those of version 1. */
export function hierarchyRoots() {
  if (existsSync(join(MOUNTS, 'cgroup.controllers'))) return [MOUNTS];
  const folders = readdirSync(MOUNTS, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  return folders
    .map(({ name }) => join(MOUNTS, name))
    .filter((root) => existsSync(join(root, 'cgroup.procs')));
}

/** Why no container's cpuset can be set here; undefined if it can. */
export function whyNoCpusets() {
  try {
    const isV2 = existsSync(join(MOUNTS, 'cgroup.controllers'));
    if (isV2 && !readFileSync(join(MOUNTS, 'cgroup.controllers'), 'utf8').split(/\s/).includes('cpuset'))
      return `${MOUNTS} has no cpuset controller`;
    if (!isV2 && !existsSync(join(MOUNTS, 'cpuset/cpuset.cpus')))
      return `no cpuset hierarchy is mounted at ${MOUNTS}/cpuset`;
  } catch (error) {
    return `there are no cgroups: ${error.message}`;
  }
  return undefined;
}

/** Makes the group `parent`, such as `/name`, and returns the folders of its runtime group. */
export function makeGroups(parent) {
  return hierarchyRoots().map((root) => {
    const folder = join(root, parent);
    for (const each of [folder, join(folder, RUNTIME_GROUP)]) {
      mkdirSync(each, { recursive: true });
      // With version 1 a cpuset takes no process before it has CPUs and memory nodes.
      const files = ['cpuset.cpus', 'cpuset.mems'].filter(
        (file) => root !== MOUNTS && existsSync(join(each, file)),
      );
      for (const file of files) writeFileSync(join(each, file), readFileSync(join(root, file)));
    }
    return join(folder, RUNTIME_GROUP);
  });
}

function foldersBelow(folder) {
  const names = existsSync(folder)
    ? readdirSync(folder, { withFileTypes: true })
        .filter((entry) => entry.isDirectory())
        .map(({ name }) => name)
    : [];
  return [...names.flatMap((name) => foldersBelow(join(folder, name))), folder];
}

const processesIn = (folder) => {
  try {
    return readFileSync(join(folder, 'cgroup.procs'), 'utf8').split('\n').filter(Boolean).map(Number);
  } catch {
    // It has ended meanwhile.
    return [];
  }
};

/** All processes at and below the groups of `parent`. */
export const processesBelow = (parent) => [
  ...new Set(hierarchyRoots().flatMap((root) => foldersBelow(join(root, parent)).flatMap(processesIn))),
];

/** Kills everything that runs in the groups of `parent`, and removes them. Returns what is left. */
export async function removeGroups(parent) {
  const deadline = Date.now() + PATIENCE_MS;
  const folders = () =>
    hierarchyRoots()
      .map((root) => join(root, parent))
      .filter(existsSync);
  for (;;) {
    for (const pid of processesBelow(parent)) killIfThere(pid);
    for (const folder of folders().flatMap(foldersBelow)) removeIfEmpty(folder);
    const left = folders();
    if (left.length === 0 || Date.now() > deadline) return left;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

function killIfThere(pid) {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    if (error.code !== 'ESRCH') throw error;
  }
}

function removeIfEmpty(folder) {
  try {
    rmdirSync(folder);
  } catch (error) {
    if (!['EBUSY', 'ENOENT', 'ENOTEMPTY'].includes(error.code)) throw error;
  }
}
