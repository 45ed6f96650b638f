// Execution: another program takes the place of this process, on the CPUs of a grant.
import { checkNames, invalidOption } from '../base/check-options.js';
import { native } from '../base/native.js';
import { bornOn } from '../threads/birth.js';
import { type GrantedThreads, inGroup } from '../threads/granted-threads.js';
import { type ChildOptions, environmentOf, type Inheritance } from './spawn.js';

/** The options of {@link Grant.exec}. */
export interface ExecOptions extends ChildOptions {
  /**
   * The environment of the program. The variables of the grant take precedence.
   * @default `process.env`
   */
  env?: Readonly<Record<string, string | undefined>>;
  /**
   * The name that the program sees as its own.
   * @default the command
   */
  argv0?: string;
  /**
   * Open descriptors that the program inherits, besides those of `LISTEN_FDS` (sd_listen_fds(3)).
   * @default none
   */
  descriptors?: readonly number[];
}

export function checkText(name: string, value: unknown, valid = 'a string without a null character'): void {
  if (typeof value !== 'string' || value.includes('\0')) invalidOption(name, value, valid);
}

/** @throws like {@link Grant.exec} */
export function executeWith(
  inheritance: Inheritance,
  command: string,
  args: readonly string[],
  options: ExecOptions,
): never {
  const given = checkNames(options, ['env', 'argv0', 'threadCounts', 'descriptors'], 'exec');
  const { env = process.env, argv0 = command, threadCounts: counts, descriptors = [] } = given;
  const valid = 'the name of a program';
  checkText('command', command, valid);
  if (command === '') invalidOption('command', command, valid);
  checkText('argv0', argv0);
  for (const arg of args) checkText('args', arg);
  const environment = Object.entries(environmentOf(inheritance, env, counts)).flatMap(([name, value]) =>
    value === undefined ? [] : [`${name}=${value}`],
  );
  for (const variable of environment) checkText('env', variable);
  if (!Array.isArray(descriptors) || !descriptors.every((fd) => Number.isInteger(fd) && fd >= 0))
    invalidOption('descriptors', descriptors, 'a list of open descriptors');
  const passed = [...descriptors, ...passedDescriptors(env), inheritance.ownerFd ?? []].flat();
  return native.execute({ file: command, args: [argv0, ...args], environment, descriptors: passed });
}

// sd_listen_fds(3): sockets that were opened for this process now belong to the program, which
// keeps its pid. Node would close them.
function passedDescriptors({ LISTEN_PID, LISTEN_FDS }: NonNullable<ExecOptions['env']>): number[] {
  const count = LISTEN_PID === String(process.pid) ? Number(LISTEN_FDS) : 0;
  return Number.isInteger(count) && count > 0 ? Array.from({ length: count }, (_, i) => 3 + i) : [];
}

/**
 * Runs `execute`, which puts another program in place of this process: on the grant's CPUs, in its
 * cgroup, with memory of its nodes preferred. If that fails, this process stays as it was.
 */
export function executeOn(target: GrantedThreads, execute: () => never): never {
  const { cpus, preferredNodes, group, learnAskedMasks } = target;
  learnAskedMasks();
  // The program inherits from the thread that executes it; the other threads end.
  const born = (within: GrantedThreads['group']) =>
    bornOn({ preferredNodes, group: within }, cpus, execute).value;
  if (!group || group.canStartInside) return born(group);
  return inGroup(target, ['process'], true, () => born(undefined));
}
