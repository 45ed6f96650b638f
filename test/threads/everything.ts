// All CPUs of this machine as if they were granted, which no manager does: one must stay shared.
import { afterEach } from 'vitest';
import { native } from '../../lib/base/native.js';
import { affinity } from '../../lib/entries/diagnostics.js';
import { discover } from '../../lib/entries/topology.js';
import { pin } from '../../lib/index.js';
import type { GrantedThreads } from '../../lib/threads/granted-threads.js';

export const ALL = affinity();

export const EVERYTHING: GrantedThreads = {
  grant: 'everything',
  part: '',
  owner: 'this test',
  cpus: ALL,
  memoryNodes: (await discover()).nodesOf(ALL),
  preferredNodes: (await discover()).nodesOf(ALL),
  oneToOne: false,
  onPart: (part) => ({ ...EVERYTHING, part }),
  group: undefined,
  learnAskedMasks: () => {},
};

/** After each test of the file that calls it. */
export function giveEverythingBack(): void {
  afterEach(() => {
    native.undoPin(EVERYTHING.grant, ALL.words);
    pin(ALL);
  });
}

/**
 * Repeats until all threads of the pool have answered, at most 20 s: on a busy machine not every
 * one has its turn within the second in which it must answer.
 */
export async function ofWholePool<T>(ask: () => T | Promise<T>, isWhole: (answer: T) => boolean): Promise<T> {
  for (const end = Date.now() + 20_000; ; ) {
    const answer = await ask();
    if (isWhole(answer) || Date.now() > end) return answer;
  }
}
