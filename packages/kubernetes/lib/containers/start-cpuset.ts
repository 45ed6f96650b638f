// StartCpuset: the cpuset of a container that is about to start. Changes since its creation may
// have missed it, since it had no cgroup.
import type { CpuSet } from 'numalign';
import type { Log } from '../base/log.js';
import type { CpusetFiles } from '../cgroups/cpuset-files.js';
import type { KnownContainer } from './inventory.js';
import { fieldsOf } from './reports.js';

/** Puts the container on these CPUs, where the record says, and returns whether it had to. Failures are logged. */
export function correctStartCpuset(
  { id, title, subject, cgroupsPath, placement }: KnownContainer,
  cpus: CpuSet,
  { cpusets, log }: { readonly cpusets: CpusetFiles; readonly log: Log },
): boolean {
  const found = cpusets.read(cgroupsPath);
  if (!found || found.equals(cpus)) return false;
  const fields = { ...fieldsOf(subject), id };
  const error = cpusets.write(cgroupsPath, cpus);
  if (error) log('error', `${title} starts on CPUs ${found}, not ${cpus}: ${error}`, fields);
  // A container on other CPUs was not created by an answer of this plugin.
  const mems = placement?.memoryNodes;
  const flaw = mems && !mems.isEmpty ? cpusets.writeMems(cgroupsPath, mems) : undefined;
  if (flaw) log('error', `${title} starts without memory of NUMA nodes ${mems}: ${flaw}`, fields);
  return true;
}
