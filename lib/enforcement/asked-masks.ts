// Asked masks: the masks that the threads of this process have asked for. They outlast what
// numalign does to masks and cpusets: native.learnAskedMasks() learns them before, these functions
// keep them meanwhile. The addon has them.
import { native } from '../base/native.js';
import type { CpuSet } from '../machine/cpu-set.js';

/**
 * Runs `move`, which moves threads between cgroups and so changes their masks: the next pin or
 * unpinning starts from those before. `leaving`: the grant that they leave. From Linux 6.2 on the
 * kernel keeps a mask that it has accepted, and in their next cgroup it may refuse it. Where what
 * comes next fails, native.restoreMasks() restores the masks.
 */
export function keepMasks<T>(move: () => T, leaving?: string): T {
  native.rememberMasks();
  try {
    if (leaving !== undefined) native.askForMasks(leaving);
    return move();
  } catch (error) {
    native.restoreMasks();
    throw error;
  }
}

/**
 * The same for the calling thread alone, which is about to enter a cgroup. Returns what runs
 * `goBack`, which moves it back, and restores the mask that it asked for, at once or later. `all`:
 * its mask until then.
 */
export function keepOwnMask(all: CpuSet): (goBack: () => void) => void {
  const mask = native.askedMask();
  return (goBack) => {
    const isAsked = native.ask(mask);
    goBack();
    if (!native.ask(mask) && !isAsked) native.askLater(mask, all.words);
  };
}
