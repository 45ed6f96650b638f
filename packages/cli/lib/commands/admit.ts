// numalign admit: admits pods, which stay until they are released.
import type { Command } from 'commander';
import { type Manager, NumalignError, openManager, type Pod } from 'numalign';
import type { AdmitAllOptions } from 'numalign/kubelet';
import { type PodRequest, reworded } from 'numalign/tools';
import { outputOption } from '../arguments/arguments.js';
import { type DeviceFlags, deviceOptions, devicesOf } from '../arguments/devices.js';
import { type EnforcementFlags, enforcementOptions, enforcementRequest } from '../arguments/enforcement.js';
import { type MovableFlags, movableOption } from '../arguments/movable.js';
import {
  managerOptions,
  type PlacementFlags,
  placementOf,
  placementOptions,
} from '../arguments/placement-flags.js';
import {
  type FilePod,
  type FileWorkload,
  filesOf,
  podFileOption,
  readWorkloads,
} from '../arguments/pod-file.js';
import { exclusiveOption, mixedOption } from '../arguments/pod-flags.js';
import { besideKubeletOption, type StateFlags, stateDirOption } from '../arguments/state-dir.js';
import { workloadTitle } from '../pages/plan-text.js';
import {
  choiceLines,
  type ExplainedContainer,
  explainContainers,
  openingLines,
  podTable,
  podTitle,
  sharedLines,
  warningLines,
} from '../pages/pod-text.js';
import { quietLines } from '../pages/quiet-text.js';
import { print, printToStderr, tell } from '../terminal/output.js';
import { explanationOf } from '../terminal/report-error.js';
import { abortAtEnd, dieOf, exitCodeOf } from '../terminal/signals.js';
import { stdoutPage } from '../terminal/terminal.js';
import { fitPage, formatJson, printable } from '../terminal/text.js';

interface AdmitFlags extends PlacementFlags, EnforcementFlags, DeviceFlags, MovableFlags, StateFlags {
  file?: string[];
  replace?: boolean;
  mixed?: boolean;
  exclusiveContainer?: string;
  besideKubelet?: boolean;
}

export function addAdmit(program: Command): void {
  const command: Command = program
    .command('admit')
    .description('Admit pods. Their containers keep CPUs, memory and devices until you release the pods.')
    .usage('-f <file> [options]')
    .addOption(podFileOption());
  for (const option of [...placementOptions(), ...enforcementOptions(), ...deviceOptions()])
    command.addOption(option);
  command
    .option('--replace', 'replace admitted pods that now request something else')
    .addOption(mixedOption())
    .addOption(exclusiveOption())
    .addOption(movableOption())
    .addOption(stateDirOption())
    .addOption(besideKubeletOption())
    .addOption(outputOption())
    .addHelpText(
      'after',
      `
numalign admits all pods of the files, or none. A Deployment, ReplicaSet or StatefulSet counts as its replicas, a Job or CronJob as the pods
that run at a time, a DaemonSet as one pod. The uid identifies a pod, else its namespace and name. An admitted pod stays as it is. If its file
asks for something else now, admit fails; with --replace the new pod takes its place, if there is room.

JSON: pods (with quiet, replaced, qosClass, and whyShared of each container).

Exit code: 0 if all pods are admitted; 1 if one is rejected, and for an error; 2 for a wrong command line.

Examples:
  $ numalign admit -f pod.yaml
  $ numalign admit -f deployment.yaml --replace
  $ numalign admit -f pod.yaml --policy restricted --output json | jq -r '.pods[].uid'
  $ numalign release gateway`,
    )
    .action((flags: AdmitFlags) => admit(filesOf(command, flags), flags));
}

async function admit(files: readonly string[], flags: AdmitFlags): Promise<void> {
  const workloads = await readWorkloads(files);
  const pods = workloads.flatMap((workload) => workload.pods);
  const { stateDir, besideKubelet, replace = false, mixed = false, output } = flags;
  const options = await managerOptions(flags);
  const manager = await openManager({
    ...options,
    devices: await devicesOf(flags),
    ...(stateDir !== undefined && { stateDir }),
    ...(besideKubelet !== undefined && { besideKubelet }),
  });
  try {
    openingLines(manager.warnings).forEach(tell);
    const request = {
      ...placementOf(flags, ['request']),
      replace,
      mixed,
      // Without the flag, manifests decide.
      ...(flags.movable && { movable: flags.movable }),
      ...(flags.exclusiveContainer !== undefined && { exclusiveContainer: flags.exclusiveContainer }),
      ...enforcementRequest(flags),
    };
    const newPods = await admitAll(manager, pods, request);
    if (!newPods) return;
    const answers = newPods.map((pod, i) => {
      const { spec, request } = pods[i]!;
      return { pod, request, containers: explainContainers(manager, spec, pod.containers) };
    });
    const pages = [...answers.map(podLines), ...noPodsLines(workloads)].map(
      (lines) => `${lines.join('\n')}\n`,
    );
    const text =
      output === 'json'
        ? formatJson({ pods: answers.map(podJson) })
        : fitPage(pages.join('\n'), stdoutPage());
    print(text);
  } finally {
    // Ends the shared membership of this process.
    manager.close();
  }
}

/** Admits all pods. Undefined if a signal came first: then the exit code is set. */
async function admitAll(
  manager: Manager,
  pods: readonly FilePod[],
  options: AdmitAllOptions,
): Promise<Pod[] | undefined> {
  const { signal, stop } = abortAtEnd();
  try {
    const specs = pods.map(({ spec }) => spec);
    return await manager.admitAll(specs, { ...options, owner: 'persistent', signal });
  } catch (error) {
    if (signal.aborted) {
      printToStderr(`numalign: ended by ${signal.reason}: nothing is admitted\n`);
      stop();
      manager.close();
      // In case this process cannot die of the signal.
      process.exitCode = exitCodeOf(signal.reason as NodeJS.Signals);
      dieOf(signal.reason as NodeJS.Signals);
      return undefined;
    }
    throw error instanceof NumalignError ? failure(error, pods) : error;
  } finally {
    stop();
  }
}

function failure(error: NumalignError, pods: readonly FilePod[]): NumalignError {
  const pod = pods[error.details.index as number];
  if (!pod) return error;
  const explanation = explanationOf(error);
  const others = pods.length > 1 ? [`nothing of ${pods.length} pods is admitted`] : [];
  // The message names the API's option.
  const remedy = error.message.endsWith('have it replaced') ? ' (--replace)' : '';
  const why = explanation?.text ?? `${error.message}${remedy}`;
  const lines = [`${podTitle(pod.request)} is not admitted: ${why}`, ...others];
  const message = lines.join(explanation ? '\n' : '; ');
  return reworded(error, message, { cause: error });
}

/** The answer for one pod. */
interface PodAnswer {
  readonly pod: Pod;
  readonly request: PodRequest;
  readonly containers: readonly ExplainedContainer[];
}

function podJson({ pod, request: { qosClass }, containers }: PodAnswer) {
  return { ...pod.toJSON(), replaced: pod.replaced, qosClass, containers };
}

function noPodsLines(workloads: readonly FileWorkload[]): string[][] {
  return workloads.flatMap((workload) =>
    workload.pods.length === 0 ? [[`${workloadTitle(workload)} asks for no pods`]] : [],
  );
}

function podLines({ pod, request, containers }: PodAnswer): string[] {
  const page = stdoutPage();
  const replacement = pod.replaced ? ', in place of what it was' : '';
  return [
    page.colors.bold(`pod ${printable(pod.name)} (${request.qosClass})`),
    ...podTable(containers, page),
    ...sharedLines(containers),
    `${pod.alreadyAdmitted ? 'admitted already' : 'admitted'} as ${printable(pod.uid)}${replacement}`,
    ...choiceLines(pod.explanation),
    ...quietLines(pod.quiet),
    ...warningLines(pod.warnings),
  ];
}
