// What is asked for on the command line itself, in place of a file.
import { type Command, InvalidArgumentError, Option } from 'commander';
import { MAX_REPLICAS, workloadsOf } from '../../input/pods/workload.js';
import { cpuCount, quantity, resource } from './arguments.js';
import { type FileWorkload, fileWorkload } from './pod-file.js';

export interface PodFlags {
  cpus?: number;
  memory?: string;
  resource?: Record<string, string>;
}

/** Of what asks for exclusive CPUs. */
export function podOptions(): Option[] {
  return [
    new Option('--cpus <n>', 'how many CPUs').argParser(cpuCount),
    new Option('--memory <quantity>', 'memory to book near them, such as 2Gi').argParser(quantity),
    new Option('--resource <name=quantity>', 'hugepages-2Mi=64Mi, or devices; may be repeated').argParser(
      resource,
    ),
  ];
}

/** How many pods of each workload. */
export function replicasOption(): Option {
  return new Option(
    '--replicas <n>',
    'how many pods of each workload, whatever its manifest says; of a pod, copies',
  ).argParser((value) => {
    const count = Number(value);
    if (/^\d+$/.test(value) && count >= 1 && count <= MAX_REPLICAS) return count;
    throw new InvalidArgumentError(`It must be a whole number of pods from 1 to ${MAX_REPLICAS}.`);
  });
}

/**
 * The Guaranteed pod of one container that was asked for; undefined: there is to be a file. Ends the
 * command where there are both, or neither.
 */
export function podOfFlags(
  command: Command,
  { file, cpus, ...flags }: PodFlags & { file?: string[]; replicas?: number },
): FileWorkload | undefined {
  const { memory, replicas } = flags;
  const own = Object.entries({ cpus, memory, resource: flags.resource }).find(
    ([, value]) => value !== undefined,
  );
  if (file !== undefined) {
    if (own) command.error(`error: option '--${own[0]}' cannot be used with option '-f, --file <file>'`);
    return undefined;
  }
  if (cpus === undefined) {
    const missing = own ? "'--cpus <n>'" : "'-f, --file <file>' or '--cpus <n>'";
    return command.error(`error: required option ${missing} not specified`);
  }
  const limits = { cpu: cpus, ...(memory !== undefined && { memory }), ...flags.resource };
  const [workload] = workloadsOf({ qosClass: 'Guaranteed', containers: [{ name: 'main', limits }] });
  return fileWorkload(workload!, 'the command line', replicas);
}
