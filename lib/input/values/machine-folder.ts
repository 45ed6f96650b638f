// The folder and the cgroup of the whole machine.

/**
 * The state folder of the whole machine. A manager with another folder is private. Root makes this
 * one, with mode 2770 and the group `numalign` if there is one: write access to it is the right to
 * take any CPU. See docs/enforcement.md.
 */
export const MACHINE_STATE_DIR = '/run/numalign';

/** The cgroup of the machine's folder. */
export const MACHINE_CGROUP_ROOT = '/numalign';
