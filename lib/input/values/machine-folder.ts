// The folder and the cgroup of the whole machine.
import { shellWord } from '../../base/text/shell-word.js';

/**
 * The state folder of the whole machine. A manager with another folder is private. Root makes this
 * one, with mode 2770 and the group `numalign` if there is one: write access to it is the right to
 * take any CPU. See docs/enforcement.md.
 */
export const MACHINE_STATE_DIR = '/run/numalign';

/** The cgroup of the machine's folder. */
export const MACHINE_CGROUP_ROOT = '/numalign';

/** A command of numalign for a state folder, in words of a shell. Without a folder, for the machine's. */
export function commandIn(path: string, words: string): string {
  const folder = path.startsWith('/') && path !== MACHINE_STATE_DIR ? ` --state-dir ${shellWord(path)}` : '';
  return `\`numalign ${words}${folder}\``;
}

/** What root does about a state whose settings have no cgroup root. */
export const cgroupAdvice = (path: string): string =>
  commandIn(path, `configure --cgroup-root ${MACHINE_CGROUP_ROOT}`);
