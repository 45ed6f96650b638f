// Hugepages for a test, reserved by it and given back.
import { accessSync, constants, readFileSync, writeFileSync } from 'node:fs';
import { onTestFinished } from 'vitest';

export const HUGEPAGE = 2 * 2 ** 20;
const POOL = '/sys/devices/system/node/node0/hugepages/hugepages-2048kB';

const read = (name: string) => Number(readFileSync(`${POOL}/${name}`, 'utf8'));
const setPool = (pages: number) => writeFileSync(`${POOL}/nr_hugepages`, String(pages));

export function canReserve(): boolean {
  try {
    accessSync(`${POOL}/nr_hugepages`, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

/** Free hugepages of node 0. */
export const freeHugepages = () => read('free_hugepages');

/** Sees to it that exactly `pages` are free on node 0 while the test runs. */
export function reserveHugepages(pages: number): void {
  // Surplus pages are in use, and go when they are freed.
  const before = read('nr_hugepages') - read('surplus_hugepages');
  onTestFinished(() => setPool(before));
  setPool(before - freeHugepages() + pages);
  if (freeHugepages() !== pages) throw new Error(`the kernel makes only ${freeHugepages()} hugepages of ${pages}`);
}
