// Removes the groups that a scenario has made below its own root. They are empty by then.
import { readdirSync, rmdirSync } from 'node:fs';

const MOUNTS = ['/sys/fs/cgroup/cpuset', '/sys/fs/cgroup'];

function remove(folder) {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    if (entry.isDirectory()) remove(`${folder}/${entry.name}`);
  }
  rmdirSync(folder);
}

export function removeCgroups(root) {
  for (const mount of MOUNTS) {
    try {
      remove(mount + root);
    } catch (error) {
      if (error.code !== 'ENOENT') throw error;
    }
  }
}
