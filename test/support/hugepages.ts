// Hugepages for a test, reserved by it and given back.
import { accessSync, constants, readFileSync, writeFileSync } from 'node:fs';
import { onTestFinished } from 'vitest';

export const HUGEPAGE = 2 * 2 ** 20;
const POOL = '/sys/devices/system/node/node0/hugepages/hugepages-2048kB';

const read = (name: string) => Number(readFileSync(`${POOL}/${name}`, 'utf8'));
const setPool = (pages: number) => writeFileSync(`${POOL}/nr_hugepages`, String(pages));

// What any test reserves at most.
const MOST = 8;
const PAUSE_MS = 100;
let reservable: boolean | undefined;

/** Whether they may be reserved, and memory is not too fragmented for it. */
export function canReserve(): boolean {
  reservable ??= hasRoomForMost();
  return reservable;
}

function hasRoomForMost(): boolean {
  try {
    accessSync(`${POOL}/nr_hugepages`, constants.W_OK);
  } catch {
    return false;
  }
  const before = ownPages();
  try {
    return makeFree(MOST, 5) >= MOST;
  } finally {
    setPool(before);
  }
}

// Surplus pages are in use, and go when they are freed.
const ownPages = () => read('nr_hugepages') - read('surplus_hugepages');

// Answers how many are free then. In fragmented memory the kernel finds more once it has moved what
// it can, and once others have freed some.
function makeFree(pages: number, mostAttempts: number): number {
  for (let attempts = mostAttempts; ; attempts--) {
    setPool(ownPages() - freeHugepages() + pages);
    if (freeHugepages() >= pages || attempts === 0) return freeHugepages();
    writeFileSync('/proc/sys/vm/compact_memory', '1');
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, PAUSE_MS);
  }
}

/** Free hugepages of node 0. */
export const freeHugepages = () => read('free_hugepages');

/** Sees to it that exactly `pages` are free on node 0 while the test runs. */
export function reserveHugepages(pages: number): void {
  const before = ownPages();
  onTestFinished(() => setPool(before));
  if (makeFree(pages, 100) !== pages)
    throw new Error(`the kernel makes only ${freeHugepages()} hugepages of ${pages}`);
}
