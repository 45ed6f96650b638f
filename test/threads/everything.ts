// All CPUs of this machine as if they were granted, which no manager does: something has to be left to share.
import { afterEach } from 'vitest';
import { affinity, discover, pin } from '../../lib/index.js';
import { native } from '../../lib/native.js';
import type { GrantedThreads } from '../../lib/threads/granted-threads.js';

export const ALL = affinity();

export const EVERYTHING: GrantedThreads = {
  grant: 'everything',
  owner: 'this test',
  cpus: ALL,
  memoryNodes: (await discover()).nodesOf(ALL),
  oneToOne: false,
  group: undefined,
};

/** After each test of the file that calls it. */
export function giveEverythingBack(): void {
  afterEach(() => {
    native.undoPin(EVERYTHING.grant, ALL.words);
    pin(ALL);
  });
}
