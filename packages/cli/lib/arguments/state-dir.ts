// The state folder, as an option of commands.
import { resolve } from 'node:path';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { MACHINE_STATE_DIR } from 'numalign';
import { stateDirVariable } from 'numalign/tools';

export { MACHINE_STATE_DIR };

/** The flags of commands on a state. */
export interface StateFlags {
  stateDir?: string;
  output: 'text' | 'json';
}

/** `isService`: of a service of the machine, which has no environment of a user's. */
export function stateDirOption(isService = false): Option {
  const variable = isService ? '' : '$NUMALIGN_STATE_DIR, or ';
  return new Option(
    '--state-dir <dir>',
    `folder of the state (default: ${variable}${MACHINE_STATE_DIR}, the whole machine's)`,
  ).argParser((value) => {
    if (value === '') throw new InvalidArgumentError('It is empty.');
    return resolve(value);
  });
}

/** A command is an emitter, which its types do not say. */
type Emitting = Command & Pick<NodeJS.EventEmitter, 'emit'>;

const SERVICE = 'agent';
// A machine that the user describes has no state.
const DESCRIPTIONS = ['xml', 'synthetic', 'json'];

/** Gives a command that names no folder the one in the environment. @throws ERR_INVALID_OPTION */
export function useStateDirVariable(command: Command): void {
  const { stateDir, ...flags } = command.opts();
  const takesFolder = command.options.some(({ long }) => long === '--state-dir');
  const ignores = command.name() === SERVICE || DESCRIPTIONS.some((name) => name in flags);
  if (!takesFolder || ignores || stateDir !== undefined) return;
  const path = stateDirVariable();
  // As if it were on the command line: units have it there.
  if (path !== undefined) (command as Emitting).emit('option:state-dir', path);
}

export function besideKubeletOption(): Option {
  return new Option('--beside-kubelet', 'go on even if a kubelet may give the same CPUs to others');
}
