// The option of `systemd-unit` for a partition, which systemd makes of the unit's cgroup where it can.
import { InvalidArgumentError, Option } from 'commander';
import { CpuSet } from 'numalign';
import { cpuList } from '../../arguments/arguments.js';
import { PARTITION_RELEASE, type Partition } from '../../systemd/service-unit.js';
import { systemdRelease } from '../../terminal/installed.js';
import { tell } from '../../terminal/output.js';

export const partitionOption = () =>
  new Option('--partition <type=list>', 'CPUs that others are kept off: isolated=2-3').argParser(partition);

/** Parses `isolated=2-3`. */
function partition(value: string): Required<Partition> {
  const [, type, list] = /^(root|isolated)=(.+)$/.exec(value) ?? [];
  const cpus = list === undefined ? CpuSet.EMPTY : cpuList(list);
  if (cpus.isEmpty)
    throw new InvalidArgumentError('It must be root or isolated, and CPUs, such as isolated=2-3.');
  return { type: type as 'root' | 'isolated', cpus: cpus.toString() };
}

/** What systemd can make of it here, with a line about what it cannot, or may not. */
export function partitionHere({ type, cpus }: Required<Partition>, unit: string): Partition {
  const release = systemdRelease() ?? 0;
  if (release >= PARTITION_RELEASE) {
    const file = `cpuset.cpus.partition in the cgroup of ${unit}`;
    tell(
      `note: systemd starts the unit even if the kernel refuses the partition: ${file} says whether it does`,
    );
    return { type, cpus };
  }
  const here = release === 0 ? 'there is no systemd here' : `systemd ${release} is here`;
  tell(
    `warning: ${here}, and CPUSetPartition= needs ${PARTITION_RELEASE}: the unit keeps to CPUs ${cpus}, but others are not kept off them`,
  );
  return { cpus };
}
