// numalign-node attach: gives a running container its own CPUs.
import { resolve } from 'node:path';
import { type Command, InvalidArgumentError } from 'commander';
import { MACHINE_STATE_DIR } from 'numalign';
import type { AttachFlags } from './attach-container.js';
import { addOutput } from './field-flags.js';

const POLICIES = ['none', 'best-effort', 'restricted', 'single-numa-node'] as const;

function whole(text: string): number {
  const number = Number(text);
  if (Number.isInteger(number) && number > 0) return number;
  throw new InvalidArgumentError('It must be a whole number of at least 1.');
}

function milliseconds(text: string): number {
  const seconds = Number(text);
  if (text.trim() !== '' && seconds >= 0.1 && seconds <= 86_400) return seconds * 1000;
  throw new InvalidArgumentError('It must be a number of seconds from 0.1 to 86400.');
}

function policy(text: string): AttachFlags['policy'] & string {
  const found = POLICIES.find((name) => name === text);
  if (found) return found;
  throw new InvalidArgumentError(`Valid: ${POLICIES.join(', ')}.`);
}

export function addAttach(program: Command): void {
  const command = program
    .command('attach')
    .description('Gives a running container its own CPUs, if the runtime has no NRI.')
    .requiredOption('--container <name>', 'its id, the first characters of it, or [[NAMESPACE/]POD/]NAME')
    .option('--cpu <number>', 'whole CPUs (default: its limit)', whole)
    .option('--memory <amount>', 'memory near the CPUs, such as 2Gi (default: its limit)')
    .option('--policy <policy>', `the Topology Manager's: ${POLICIES.join(', ')}`, policy)
    .option('--grant <uid>', 'the CPUs of an existing grant that no process owns')
    .option('--only', 'leave other containers on these CPUs')
    .option('--follow', 'keep it so until the container ends')
    .option('--reconcile-period <seconds>', 'between two looks with --follow (default: 10)', milliseconds)
    .option('--runtime-endpoint <socket>', "the runtime's socket (default: the one that exists)")
    .option('--state-dir <dir>', 'folder of the state', (text) => resolve(text), MACHINE_STATE_DIR);
  addOutput(command);
  command
    .addHelpText(
      'after',
      `
The grant belongs to the container's cgroup, and ends with it. All other containers of the runtime
leave the CPUs first. With --follow they come back when the grant ends, and changes by others are
repaired; without it they come back at the next attach.

Example:
  $ numalign-node attach --container web/nginx --cpu 2 --follow`,
    )
    .action(async (flags: AttachFlags) => (await import('./attach-container.js')).attach(flags));
}
