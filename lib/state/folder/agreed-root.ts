// AgreedRoot: the cgroup root that root has chosen for a state folder, in a file of root's outside
// the folder. Nothing proves who wrote a record into a folder that others can write, and root could
// change any cgroup that the record names. The file lasts until the next boot.
import { createHash } from 'node:crypto';
import { isNumalignError, NumalignError, unlessRefused, unlessThrown } from '../../base/errors.js';
import { native } from '../../base/native.js';
import type { NativeFolder } from '../../base/native-files.js';
import { shellWord } from '../../base/text/shell-word.js';
import { defaultCgroupRoot } from '../../cgroups/files/cgroup-namespace.js';
import { using } from '../files/parts.js';

export const CHOICES = '/run/numalign-root';
const MODE = 0o700;
const ACL = 'system.posix_acl_access';
/** The bytes of the longest name, less those of `.new` while the file is written. */
const MOST_BYTES = 251;

export class AgreedRoot {
  /** `folder`: the open state folder. */
  constructor(
    private readonly path: string,
    private readonly scope: 'machine' | 'private',
    private readonly folder: NativeFolder,
  ) {}

  /** True if this process is root, and others than root may have written the state. */
  get counts(): boolean {
    return process.geteuid!() === 0 && !isRootsAlone(this.path, this.folder);
  }

  /**
   * Why this process must not use a cgroup root on record, and what root can do; `given`: its own
   * option.
   */
  refusal(cgroupRoot: string, given: string | null | undefined) {
    if (!this.counts) return undefined;
    const chosen = given !== undefined ? given : this.#read();
    if (chosen === cgroupRoot) return undefined;
    const choice = chosen === undefined ? 'unreadable' : (chosen ?? 'none');
    return {
      why: `others than root can write ${this.path}, where the cgroup root ${cgroupRoot} is on record, and root's choice is ${choice}`,
      advice: `if the record is right, as root run ${this.#configure(cgroupRoot)}, or pass the option cgroupRoot; else ${this.#configure(chosen ?? null)}`,
    };
  }

  /**
   * Records what root has chosen. Without the file, which only a writable /run can have, other
   * processes of root use no cgroup root but the default.
   * @throws like {@link checkPlace}
   */
  record(cgroupRoot: string | null): void {
    if (this.#isRecorded)
      inRecords(true, (folder) => folder.replace(this.#name, JSON.stringify({ cgroupRoot })));
  }

  /** @throws ERR_STATE_FOLDER if others than root could change what {@link record} writes */
  checkPlace(): void {
    if (this.#isRecorded) inRecords(false, () => {});
  }

  get #isRecorded(): boolean {
    return process.geteuid!() === 0 && (this.scope === 'machine' || this.counts);
  }

  #configure(cgroupRoot: string | null): string {
    const folder = this.scope === 'machine' ? '' : ` --state-dir ${shellWord(this.path)}`;
    return `\`numalign configure --cgroup-root ${shellWord(cgroupRoot ?? 'none')}${folder}\``;
  }

  get #name(): string {
    return fileNameOf(this.path);
  }

  #read(): string | null | undefined {
    const text = unlessRefused(() => inRecords(false, (folder) => folder.read(this.#name)?.toString()));
    return text === undefined ? defaultCgroupRoot(this.scope) : rootIn(text);
  }
}

/** The name of a file about a path. `before`: the bytes that are put before it. */
export function fileNameOf(path: string, before = 0): string {
  const name = encodeURIComponent(path);
  return before + name.length <= MOST_BYTES ? name : createHash('sha256').update(path).digest('hex');
}

/**
 * Calls `action` with the folder of choices. Undefined if the kernel refuses that.
 * @throws ERR_STATE_FOLDER if the folder is not root's alone
 */
export function inRecords<T>(create: boolean, action: (folder: NativeFolder) => T): T | undefined {
  try {
    return using(native.Folder.open(CHOICES, create, MODE, -1), (folder) => {
      if (!isRootsAlone(CHOICES, folder)) throw notRoots('others than root can write there');
      return action(folder);
    });
  } catch (error) {
    if (!isNumalignError(error, 'ERR_SYSCALL')) throw error;
    if (['ELOOP', 'ENOTDIR'].includes(error.errnoName ?? '')) throw notRoots('it is a link or not a folder');
    return undefined;
  }
}

const notRoots = (why: string) =>
  new NumalignError(
    'ERR_STATE_FOLDER',
    `${CHOICES} cannot hold root's choice of a cgroup root: ${why}. As root run \`rm -r ${CHOICES}\`; numalign makes it again`,
    { value: CHOICES, valid: 'a folder that only root can write, or none' },
  );

// Undefined if the file is damaged: no root is chosen then.
function rootIn(text: string): string | null | undefined {
  return unlessThrown(() => JSON.parse(text).cgroupRoot);
}

// Root's group counts as root. An ACL that cannot be read may name anyone.
function isRootsAlone(path: string, folder: NativeFolder): boolean {
  const { user, group, mode } = folder.owner();
  const isRoots = user === 0 && (mode & 0o002) === 0 && (group === 0 || (mode & 0o020) === 0);
  return isRoots && unlessRefused(() => native.extendedAttribute(path, ACL), '') === undefined;
}

export type RootRefusal = NonNullable<ReturnType<AgreedRoot['refusal']>>;
