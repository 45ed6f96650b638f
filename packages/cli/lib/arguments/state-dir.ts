// The state folder, as an option of commands.
import { resolve } from 'node:path';
import { InvalidArgumentError, Option } from 'commander';
import { MACHINE_STATE_DIR } from 'numalign';

export { MACHINE_STATE_DIR };

/** The flags of commands on a state. */
export interface StateFlags {
  stateDir?: string;
  output: 'text' | 'json';
}

export function stateDirOption(): Option {
  return new Option(
    '--state-dir <dir>',
    `folder of the state (default: ${MACHINE_STATE_DIR}, the whole machine's)`,
  ).argParser((value) => {
    if (value === '') throw new InvalidArgumentError('It is empty.');
    return resolve(value);
  });
}

export function besideKubeletOption(): Option {
  return new Option('--beside-kubelet', 'go on even if a kubelet may give the same CPUs to others');
}
