// NUMA balancing marks pages to see which CPUs use them next. Until then move_pages(2) tells the node of
// none of them (Linux 6.1), and numa_maps only that of a whole mapping.
import { writeFileSync } from 'node:fs';
import { after } from 'node:test';
import { read } from './kernel-view.mjs';

const FILE = '/proc/sys/kernel/numa_balancing';

/** Stops it until the tests of the file have ended, which ask where pages are. */
export function stopNumaBalancing() {
  const before = read(FILE);
  writeFileSync(FILE, '0');
  after(() => writeFileSync(FILE, before));
}
