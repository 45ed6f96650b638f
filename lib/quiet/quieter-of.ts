// The quieter of the machine that this process runs on. It is loaded with the first grant that asks
// for quiet, since few grants need it.
import type { Assignments } from '../account/assignments.js';
import type { CpuSet } from '../machine/cpu-set.js';
import type { Topology } from '../machine/topology.js';
import { quietPods } from './kernel/demands.js';
import { kernelFiles } from './kernel/kernel-files.js';
import { kernelWork, readKernelSettings, workText } from './kernel-work.js';
import { MachineQuieter } from './machine-quieter.js';
import { PARTS } from './parts/parts.js';
import { NO_QUIETER, type Quieter } from './quieter.js';

const isConcerned = ({ pods, quiet }: Assignments) => quiet !== null || quietPods(pods).length > 0;

/** `topology` returns the current topology. */
export function quieterOf(topology: () => Topology): Quieter {
  let cache: MachineQuieter | undefined;
  const quieter = () => (cache ??= machineQuieter(topology));
  return {
    follow: (before, next, ...how) =>
      isConcerned(before) || isConcerned(next) ? quieter().follow(before, next, ...how) : undefined,
    outcome: (state, uid) => quieter().outcome(state, uid),
    compare: (state) => (isConcerned(state) ? quieter() : NO_QUIETER).compare(state),
  };
}

function machineQuieter(topology: () => Topology): MachineQuieter {
  const files = kernelFiles();
  const remainingWork = (cpus: CpuSet) => kernelWork(readKernelSettings(files), cpus).map(workText);
  return new MachineQuieter(topology, PARTS, files, remainingWork);
}
