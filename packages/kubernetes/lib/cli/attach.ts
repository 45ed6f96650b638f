// numalign-node attach: gives a running container its own CPUs.
import { constants } from 'node:os';
import { resolve } from 'node:path';
import { type Command, InvalidArgumentError } from 'commander';
import { MACHINE_STATE_DIR, type Manager, openManager } from 'numalign';
import { NodeError } from '../base/errors.js';
import { AttachmentKeeper } from '../cri/attachment-keeper.js';
import { type AttachedContainer, ContainerAttachment } from '../cri/container-attachment.js';
import { describeContainer } from '../cri/container-names.js';
import { ContainerRuntime } from '../cri/container-runtime.js';
import { staticPolicies } from '../kubelet/kubelet-policy.js';
import { addOutput, isJson } from './field-flags.js';
import { logToStderr, print, printJson } from './output.js';

const POLICIES = ['none', 'best-effort', 'restricted', 'single-numa-node'] as const;

interface AttachFlags {
  container: string;
  cpu?: number;
  memory?: string;
  policy?: (typeof POLICIES)[number];
  grant?: string;
  only?: boolean;
  follow?: boolean;
  reconcilePeriod?: number;
  runtimeEndpoint?: string;
  stateDir: string;
  output?: 'text' | 'json';
  json?: boolean;
}

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

function policy(text: string): (typeof POLICIES)[number] {
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
    .action(attach);
}

function checkFlags({ grant, cpu, memory, policy }: AttachFlags): void {
  if (grant === undefined || (cpu ?? memory ?? policy) === undefined) return;
  throw new NodeError('ERR_INVALID_OPTION', 'with --grant nothing is admitted', {
    value: { cpu, memory, policy },
    valid: '--grant without --cpu, --memory and --policy',
  });
}

async function attach(flags: AttachFlags): Promise<void> {
  checkFlags(flags);
  const { stateDir, runtimeEndpoint } = flags;
  const runtime = new ContainerRuntime(runtimeEndpoint === undefined ? {} : { socketPath: runtimeEndpoint });
  const end = endSignal();
  try {
    // Fails before a state is made for nothing.
    await runtime.version();
    const manager = await openManager({
      stateDir,
      sharedMember: false,
      besideKubelet: await isKubeletIdle(),
    });
    try {
      await attachIn(manager, runtime, flags, end);
    } finally {
      manager.close();
    }
  } catch (error) {
    if (!end.aborted || error !== end.reason) throw error;
    // The exit code that a shell reports.
    process.exitCode = 128 + constants.signals[end.reason as NodeJS.Signals];
  } finally {
    runtime.close();
  }
}

// A kubelet that assigns no CPUs is harmless. Any other one is judged by its record.
const isKubeletIdle = () =>
  staticPolicies().then(
    ({ length }) => length === 0,
    () => false,
  );

/** Aborted when a signal ends the command; the reason is the signal's name. */
function endSignal(): AbortSignal {
  const controller = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const)
    process.on(name, () => controller.abort(name));
  return controller.signal;
}

async function attachIn(
  manager: Manager,
  runtime: ContainerRuntime,
  flags: AttachFlags,
  signal: AbortSignal,
): Promise<void> {
  const parts = { manager, runtime, log: logToStderr };
  const attachment = new ContainerAttachment({ ...flags, ...parts, signal });
  await attachment.start();
  show(attachment.attached, flags);
  const { reconcilePeriod, follow } = flags;
  if (!follow) return;
  const keeper = new AttachmentKeeper({
    ...parts,
    attachment,
    ...(reconcilePeriod !== undefined && { reconcilePeriodMs: reconcilePeriod }),
  });
  signal.addEventListener('abort', () => void keeper.close());
  await keeper.start();
  if (!signal.aborted) await keeper.ended;
  await keeper.close();
}

function show(attached: AttachedContainer, { stateDir, ...flags }: AttachFlags): void {
  const { container, grant, cpus, mems, cpuset, moves } = attached;
  if (!isJson(flags)) {
    const nodes = mems ? `, with memory of NUMA nodes ${mems}` : '';
    print(`${describeContainer(container)} is on CPUs ${cpus}${nodes}: grant ${grant}`);
    for (const { container: other, after } of moves) print(`${describeContainer(other)} is on CPUs ${after}`);
    return;
  }
  const { id, name, pod, namespace, pid } = container;
  printJson({
    stateDir,
    grant,
    container: { id, name, pod, namespace, pid },
    cpus,
    mems,
    cgroup: { path: cpuset.folder, cpus: cpuset.effectiveCpus, mems: cpuset.effectiveMems },
    others: moves.map((move) => ({ id: move.container.id, before: move.before, after: move.after })),
  });
}
