// The CPUs of a machine that are online at this moment.
import { unlessRefused } from '../base/errors.js';
import { native } from '../base/native.js';
import type { Words } from '../base/words.js';
import { CpuSet } from './cpu-set.js';
import type { Topology } from './topology.js';

// The addon answers the same words as long as the kernel says the same.
const sets = new WeakMap<Words, CpuSet>();

/** The set of a list that the kernel shows: one object as long as it says the same. */
export function listedCpus(words: Words): CpuSet {
  let cpus = sets.get(words);
  if (!cpus) {
    cpus = new CpuSet(words);
    sets.set(words, cpus);
  }
  return cpus;
}

/** /sys/devices/system/cpu/online; undefined where it is hidden, such as from a container. */
export function readOnlineCpus(): CpuSet | undefined {
  return unlessRefused(() => listedCpus(native.onlineCpus()));
}

/**
 * Those of the topology's CPUs that have not gone offline since it was loaded. Of those that have
 * come since nothing is known: who loads the topology anew has them. Described machines do not
 * change. /sys/devices/system/cpu/online is read each time.
 */
export function onlineCpus(topology: Topology): CpuSet {
  return topology.isSimulated ? topology.cpus : cpusAmong(topology, readOnlineCpus());
}

/** The same of a machine where these are online; undefined: that is hidden. */
export function cpusAmong(topology: Topology, online: CpuSet | undefined): CpuSet {
  return !online || topology.cpus.isSubsetOf(online) ? topology.cpus : topology.cpus.intersection(online);
}
