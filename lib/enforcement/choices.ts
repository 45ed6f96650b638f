// Choices: the masks that the threads of this process have chosen. They outlast what numalign does
// to masks and cpusets: learn them before, keep them meanwhile, restore them afterwards. The addon
// has them.
import { native } from '../base/native.js';
import type { NativeMemberThread } from '../base/native-threads.js';
import type { CpuSet } from '../machine/cpu-set.js';

export const choices = {
  /**
   * Learns what threads on no grant have chosen. `limit`: the CPUs of their cpuset; empty if
   * unknown. A thread that may run on all of them has chosen nothing, and gets `all`. `known`: the
   * masks of these threads that numalign has set.
   */
  learn(limit: CpuSet, all: CpuSet, known: readonly NativeMemberThread[]): void {
    native.learnChoices(limit.words, all.words, known);
  },

  /**
   * Runs `move`, which moves threads between cgroups and so changes their masks: the next pin or
   * unpinning starts from those before. `leaving`: the grant that they leave. From Linux 6.2 on the
   * kernel keeps a mask that it has accepted, and in their next cgroup it may refuse it.
   */
  keep<T>(move: () => T, leaving?: string): T {
    native.rememberMasks();
    try {
      if (leaving !== undefined) native.askChoices(leaving);
      return move();
    } catch (error) {
      native.restoreMasks();
      throw error;
    }
  },

  /**
   * The same for the calling thread alone, which is about to enter a cgroup. Returns what runs
   * `goBack`, which moves it back, and restores its choice, at once or later. `all`: its mask until
   * then.
   */
  keepOwn(all: CpuSet): (goBack: () => void) => void {
    const mask = native.askedMask();
    return (goBack) => {
      const isAsked = native.ask(mask);
      goBack();
      if (!native.ask(mask) && !isAsked) native.askLater(mask, all.words);
    };
  },

  /** Restores the masks that {@link keep} kept, where what came next has failed. */
  restore(): void {
    native.restoreMasks();
  },

  /**
   * Restores choices that the cpuset did not allow when threads left a grant. `limit`: the CPUs
   * that it has now. Returns the number of threads; with `dryRun` it changes nothing.
   */
  restoreLate(limit: CpuSet, dryRun: boolean): number {
    return native.settleChoices(limit.words, dryRun);
  },
};
