// A pod that the command line describes, in place of a file.
import { type Command, InvalidArgumentError, Option } from 'commander';
import { contentsOf, MAX_REPLICAS } from 'numalign/tools';
import { bytes, cpuAmount, cpuAmountOrRange, resource, WHOLE_CPUS, weight } from './arguments.js';
import { type FileWorkload, fileWorkload } from './pod-file.js';

export interface PodFlags {
  cpus?: number;
  mixed?: boolean;
  memory?: string;
  resource?: Record<string, string>;
}

/** The options of a request for exclusive CPUs. */
export function podOptions(cpus = new Option('--cpus <n>', 'how many CPUs').argParser(cpuAmount)): Option[] {
  return [
    cpus,
    mixedOption(),
    new Option('--memory <quantity>', 'memory to book near them, such as 2Gi').argParser(bytes),
    new Option('--resource <name=quantity>', 'hugepages-2Mi=64Mi, or devices; may be repeated').argParser(
      resource,
    ),
  ];
}

export const exclusiveOption = () =>
  new Option(
    '--exclusive-container <name>',
    'a container of a Burstable pod that gets exclusive CPUs, which no kubelet does',
  );

export const mixedOption = () =>
  new Option('--mixed', 'for a fraction such as 2.5: the whole CPUs are exclusive, the rest is shared');

/** Replaces `--cpus` of {@link podOptions}. */
export const cpusOrRangeOption = () =>
  new Option('--cpus <n>', 'how many CPUs; 2..8: at least 2, and up to 8 if there is room').argParser(
    cpuAmountOrRange,
  );

export const weightOption = () =>
  new Option(
    '--weight <n>',
    'share of a range of CPUs relative to others, 1 to 10000 (default: 100)',
  ).argParser(weight);

/** Ends the command if `--cpus` is a fraction without `--mixed`. */
export function checkCpus(command: Command, { cpus, mixed = false }: PodFlags): void {
  if (cpus === undefined || mixed || Number.isInteger(cpus)) return;
  const valid = `${WHOLE_CPUS} With --mixed it may be a fraction.`;
  command.error(`error: option '--cpus <n>' argument '${cpus}' is invalid. ${valid}`);
}

interface RangeFlags extends Omit<PodFlags, 'cpus'> {
  cpus?: number | { readonly min: number; readonly max: number };
  weight?: number;
  supervise?: boolean;
}

/**
 * Like {@link checkCpus}; also checks the options that a range excludes. Only a supervising
 * numalign can move the command off CPUs.
 */
export function checkCpusOrRange(command: Command, { cpus, weight, supervise, ...flags }: RangeFlags): void {
  const conflict = (option: string, why: string) => command.error(`error: option '${option}' ${why}`);
  if (typeof cpus !== 'object') {
    if (weight !== undefined) conflict('--weight <n>', 'requires a range of CPUs, such as --cpus 2..8');
    checkCpus(command, { ...flags, ...(cpus !== undefined && { cpus }) });
    return;
  }
  if (flags.mixed) conflict('--mixed', 'cannot be used with a range of CPUs');
  if (supervise === false) conflict('--no-supervise', 'cannot be used with a range of CPUs');
}

/** The number of pods of each workload. */
export function replicasOption(): Option {
  return new Option(
    '--replicas <n>',
    'how many pods of each workload, instead of the number in its manifest; of a pod, how many copies',
  ).argParser((value) => {
    const count = Number(value);
    if (/^\d+$/.test(value) && count >= 1 && count <= MAX_REPLICAS) return count;
    throw new InvalidArgumentError(`It must be a whole number of pods from 1 to ${MAX_REPLICAS}.`);
  });
}

/**
 * The Guaranteed pod of one container that the flags describe; undefined if there is a file. Ends
 * the command if there are both, or neither.
 */
export function podOfFlags(
  command: Command,
  flags: PodFlags & { file?: string[]; replicas?: number },
): FileWorkload | undefined {
  checkCpus(command, flags);
  const { file, cpus, memory, replicas } = flags;
  const podFlag = Object.entries({ cpus, memory, resource: flags.resource }).find(
    ([, value]) => value !== undefined,
  );
  if (file !== undefined) {
    if (podFlag)
      command.error(`error: option '--${podFlag[0]}' cannot be used with option '-f, --file <file>'`);
    return undefined;
  }
  if (cpus === undefined) {
    const missing = podFlag ? "'--cpus <n>'" : "'-f, --file <file>' or '--cpus <n>'";
    return command.error(`error: required option ${missing} not specified`);
  }
  const limits = { cpu: cpus, ...(memory !== undefined && { memory }), ...flags.resource };
  const { workloads } = contentsOf({ qosClass: 'Guaranteed', containers: [{ name: 'main', limits }] });
  return fileWorkload(workloads[0]!, 'the command line', replicas);
}
