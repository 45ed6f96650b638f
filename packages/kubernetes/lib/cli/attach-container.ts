// AttachContainer: what `numalign-node attach` does.
import { constants } from 'node:os';
import { type Manager, openManager } from 'numalign';
import { NodeError } from '../base/errors.js';
import { AttachmentKeeper } from '../cri/attachment-keeper.js';
import { type AttachedContainer, ContainerAttachment } from '../cri/container-attachment.js';
import { describeContainer } from '../cri/container-names.js';
import { ContainerRuntime } from '../cri/container-runtime.js';
import { staticPolicies } from '../kubelet/kubelet-policy.js';
import { isJson } from './field-flags.js';
import { logToStderr, print, printJson } from './output.js';

export interface AttachFlags {
  container: string;
  cpu?: number;
  memory?: string;
  policy?: 'none' | 'best-effort' | 'restricted' | 'single-numa-node';
  grant?: string;
  only?: boolean;
  follow?: boolean;
  reconcilePeriod?: number;
  runtimeEndpoint?: string;
  stateDir: string;
  output?: 'text' | 'json';
  json?: boolean;
}

function checkFlags({ grant, cpu, memory, policy }: AttachFlags): void {
  if (grant === undefined || (cpu ?? memory ?? policy) === undefined) return;
  throw new NodeError('ERR_INVALID_OPTION', 'with --grant nothing is admitted', {
    value: { cpu, memory, policy },
    valid: '--grant without --cpu, --memory and --policy',
  });
}

/** Ends with the container, or a signal. */
export async function attach(flags: AttachFlags): Promise<void> {
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
