// RootChoice: the cgroup root that root has chosen for a state folder, in a file of root's outside
// the folder. Nothing proves who wrote a record into a folder that others can write, and root could
// change any cgroup that the record names. The file lasts until the next boot.
import { unlessRefused } from '../../base/errors.js';
import { native } from '../../base/native.js';
import type { NativeFolder } from '../../base/native-files.js';
import { defaultCgroupRoot } from '../../cgroups/files/cgroup-namespace.js';
import { using } from '../files/parts.js';

const CHOICES = '/run/numalign-root';
const MODE = 0o700;
const ACL = 'system.posix_acl_access';

export class RootChoice {
  readonly #path: string;
  readonly #scope: 'machine' | 'private';
  readonly #folder: NativeFolder;

  /** `folder`: the open state folder. */
  constructor(path: string, scope: 'machine' | 'private', folder: NativeFolder) {
    this.#path = path;
    this.#scope = scope;
    this.#folder = folder;
  }

  /** True if this process is root, and others than root may have written the state. */
  get counts(): boolean {
    return process.geteuid?.() === 0 && (!isRoots(this.#folder) || this.#hasAcl);
  }

  // An unreadable one may name anyone.
  get #hasAcl(): boolean {
    return unlessRefused(() => native.extendedAttribute(this.#path, ACL), '') !== undefined;
  }

  /** Why this process must not use a cgroup root on record; `given`: its own option. */
  whyNot(cgroupRoot: string, given: string | null | undefined): string | undefined {
    if (!this.counts) return undefined;
    const chosen = given !== undefined ? given : this.#read();
    if (chosen === cgroupRoot) return undefined;
    return `others than root can write ${this.#path}, and root has not chosen the cgroup root ${cgroupRoot} that is on record there: pass the option cgroupRoot, or as root run \`numalign configure --cgroup-root ${cgroupRoot}\``;
  }

  /** Records what root has chosen. Without the file, other processes of root use no cgroups. */
  record(cgroupRoot: string | null): void {
    if (process.geteuid?.() !== 0 || (this.#scope === 'private' && !this.counts)) return;
    unlessRefused(() =>
      using(native.Folder.open(CHOICES, true, MODE, -1), (folder) =>
        folder.replace(this.#name, JSON.stringify({ cgroupRoot })),
      ),
    );
  }

  get #name(): string {
    return encodeURIComponent(this.#path);
  }

  #read(): string | null | undefined {
    const text = unlessRefused(() =>
      using(native.Folder.open(CHOICES, false, MODE, -1), (folder) =>
        isRoots(folder) ? folder.read(this.#name)?.toString() : undefined,
      ),
    );
    return text === undefined ? defaultCgroupRoot(this.#scope) : rootIn(text);
  }
}

// Undefined if the file is damaged: no root is chosen then.
function rootIn(text: string): string | null | undefined {
  try {
    return JSON.parse(text).cgroupRoot;
  } catch {
    return undefined;
  }
}

// Root's group counts as root.
function isRoots(folder: NativeFolder): boolean {
  const { user, group, mode } = folder.owner();
  return user === 0 && (mode & 0o002) === 0 && (group === 0 || (mode & 0o020) === 0);
}
