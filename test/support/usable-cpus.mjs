// Whether threads can be moved between all CPUs here. Loads nothing of the package, which tests may
// have loaded in their own way.
import { readFileSync } from 'node:fs';
import { parseList } from '../torture/state-file.mjs';

/** Why not; undefined if they can. */
export function whyNotPlaceable() {
  const online = parseList(readFileSync('/sys/devices/system/cpu/online', 'utf8').trim());
  if (online.length < 2) return 'needs two CPUs';
  const [, list] = /^Cpus_allowed_list:\s*(\S+)$/m.exec(readFileSync('/proc/self/status', 'utf8'));
  const allowed = new Set(parseList(list));
  return online.every((cpu) => allowed.has(cpu))
    ? undefined
    : `needs all CPUs of the machine, and may use ${list} only`;
}
