// The interrupts of the network interface of the default gateway.
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseInterrupts } from '../../dist-test/lib/doctor/hardware-facts.js';

/** The arguments of node for a process that sends packets. */
export const SENDER = fileURLToPath(new URL('network-sender.mjs', import.meta.url));

const BURST_MS = 1000;
const FEWEST = 50;

/** The address of the default gateway; undefined if there is none. */
export function gateway() {
  const routes = readFileSync('/proc/net/route', 'utf8').split('\n').slice(1);
  const route = routes.map((line) => line.split('\t')).find(([, destination]) => destination === '00000000');
  // In the byte order of a little-endian machine.
  return route && Buffer.from(route[2], 'hex').reverse().join('.');
}

/** The number of each device's interrupts, on all CPUs. */
function interruptCounts() {
  const rows = parseInterrupts(readFileSync('/proc/interrupts', 'utf8')) ?? [];
  const sum = (counts) => [...counts.values()].reduce((all, count) => all + count, 0);
  return new Map(rows.map(({ irq, counts }) => [irq, sum(counts)]));
}

/** The interrupts that arrive while packets are sent; empty if no interface can send any. */
export function networkInterrupts() {
  if (!gateway()) return [];
  const before = interruptCounts();
  spawnSync(process.execPath, [SENDER, String(BURST_MS)], { stdio: 'ignore' });
  return [...interruptCounts()]
    .filter(([irq, count]) => count - (before.get(irq) ?? 0) >= FEWEST)
    .map(([irq]) => irq);
}

/**
 * Directs interrupts to one CPU; returns a function that restores them. @throws what writing to
 * /proc throws
 */
export function moveInterrupts(irqs, cpu) {
  const files = irqs.map((irq) => `/proc/irq/${irq}/smp_affinity_list`);
  const before = files.map((file) => readFileSync(file, 'utf8'));
  const putBack = () => {
    for (const [i, file] of files.entries()) writeFileSync(file, before[i]);
  };
  try {
    for (const file of files) writeFileSync(file, String(cpu));
  } catch (error) {
    putBack();
    throw error;
  }
  return putBack;
}
