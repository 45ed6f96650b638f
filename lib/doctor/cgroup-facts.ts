// Reads CgroupFacts. Changes nothing.
import { dirname, relative } from 'node:path';
import { NumalignError, refusalOf, unlessRefused } from '../base/errors.js';
import { native } from '../base/native.js';
import { openCpusetHierarchy } from '../cgroups/cpuset-hierarchy.js';
import { defaultCgroupRoot } from '../cgroups/files/cgroup-namespace.js';
import { MadeGroupsInMemory } from '../cgroups/files/made-groups.js';
import { cgroupFolder } from '../cgroups/limits.js';
import { MACHINE_CGROUP_ROOT } from '../input/values/machine-folder.js';
import { using } from '../state/files/parts.js';
import { AgreedRoot, type RootRefusal } from '../state/folder/agreed-root.js';
import { canonical } from '../state/folder/folder.js';
import { RootUsers } from '../state/root-users.js';
import type { CgroupFacts, FactsQuestion, StateFolderFacts } from './facts.js';

/** A text that says why, if there is no cpuset hierarchy. */
export function readCgroups(question: FactsQuestion, scope: StateFolderFacts['scope']): CgroupFacts | string {
  const { settings, cgroupRoot } = question;
  const used =
    cgroupRoot !== undefined ? cgroupRoot : settings ? settings.cgroupRoot : defaultCgroupRoot(scope);
  // If no root is used, the facts are about the one that could be.
  const root = used ?? MACHINE_CGROUP_ROOT;
  try {
    const hierarchy = openCpusetHierarchy(root, new MadeGroupsInMemory());
    return {
      version: hierarchy.version,
      root,
      rootPath: hierarchy.rootPath,
      isUsed: used !== null,
      rootRefusal: used === null ? undefined : rootRefusal(question, scope, used),
      whyNotWritable: hierarchy.canWrite() ? undefined : refusalOf(() => hierarchy.checkWritable())?.message,
      whyNoPartition: refusalOf(() => {
        const why = hierarchy.whyNoPartition();
        if (why) throw why;
      })?.message,
      own: ownPath(hierarchy.mount),
      delegated: delegatedRoot(hierarchy.mount),
    };
  } catch (error) {
    if (error instanceof NumalignError) return error.message;
    throw error;
  }
}

function rootRefusal(
  { stateDir, settings, cgroupRoot }: FactsQuestion,
  scope: StateFolderFacts['scope'],
  used: string,
): RootRefusal | undefined {
  return unlessRefused(() => {
    const path = canonical(stateDir);
    return using(
      native.Folder.open(path, false, 0, -1),
      (folder) =>
        new AgreedRoot(path, scope, folder).refusal(used, cgroupRoot) ??
        new RootUsers(path).refusal({ cgroupRoot: used, managedCPUs: settings?.managedCPUs ?? null }),
    );
  });
}

// The folder of this process's own cgroup.
export const ownFolder = (controller: string): string | undefined =>
  unlessRefused(() => cgroupFolder(process.pid, controller));

// The path below the mount point, as --cgroup-root takes it.
function ownPath(mount: string): string | undefined {
  const folder = ownFolder('cpuset');
  return folder === undefined ? undefined : `/${relative(mount, folder)}`;
}

// A root below the nearest cgroup above this process that numalign could use, unless that is the
// root of the hierarchy.
function delegatedRoot(mount: string): string | undefined {
  const name = MACHINE_CGROUP_ROOT;
  for (let ancestor = ownPath(mount) ?? '/'; ancestor !== '/'; ancestor = dirname(ancestor)) {
    const isOpen = unlessRefused(() =>
      openCpusetHierarchy(ancestor + name, new MadeGroupsInMemory()).canWrite(),
    );
    if (isOpen) return ancestor + name;
  }
  return undefined;
}
