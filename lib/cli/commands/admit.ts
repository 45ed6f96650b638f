// numalign admit: pods that stay until they are released.
import type { Command } from 'commander';
import { NumalignError } from '../../base/errors.js';
import type { Explanation } from '../../entries/diagnostics.js';
import { type Manager, openManager, type Pod, type RequestOptions } from '../../index.js';
import type { PodRequest } from '../../input/pod-request.js';
import { outputOption } from '../arguments/arguments.js';
import { type DeviceFlags, deviceOptions, devicesOf } from '../arguments/devices.js';
import { type EnforcementFlags, enforcementOptions, enforcementRequest } from '../arguments/enforcement.js';
import { managerOptions, type PlacementFlags, placementOptions } from '../arguments/placement.js';
import { type FilePod, fileOf, podFileOption, readPods } from '../arguments/pod-file.js';
import { besideKubeletOption, stateDirOption } from '../arguments/state-dir.js';
import {
  type ExplainedContainer,
  explainedContainers,
  openingLines,
  podTable,
  podTitle,
  sharedLines,
  warningLines,
} from '../pages/pod-text.js';
import { quietLines } from '../pages/quiet-text.js';
import { print, printToStderr, tell } from '../terminal/output.js';
import { abortedByEnd, dieOf, exitCodeOf } from '../terminal/signals.js';
import { stdoutPage } from '../terminal/terminal.js';
import { fitted, formatJson, printable } from '../terminal/text.js';

interface AdmitFlags extends PlacementFlags, EnforcementFlags, DeviceFlags {
  file?: string;
  stateDir?: string;
  besideKubelet?: boolean;
  output: 'text' | 'json';
}

export function addAdmit(program: Command): void {
  const command: Command = program
    .command('admit')
    .description('Admit pods: their containers keep their CPUs until the pods are released, whatever runs.')
    .usage('-f <file> [options]')
    .addOption(podFileOption());
  for (const option of [...placementOptions(), ...enforcementOptions(), ...deviceOptions()])
    command.addOption(option);
  command
    .addOption(stateDirOption())
    .addOption(besideKubeletOption())
    .addOption(outputOption())
    .addHelpText(
      'after',
      `
All pods of the file are admitted, or none. A pod without a uid gets one. A pod that is admitted already, by its uid, stays as it is.

Exit code: 0 where all pods are admitted; 1 where one is rejected, and for an error; 2 for a wrong command line.

Examples:
  $ numalign admit -f pod.yaml
  $ numalign admit -f pod.yaml --policy restricted --output json | jq -r '.pods[].uid'
  $ numalign release gateway`,
    )
    .action((flags: AdmitFlags) => admit(fileOf(command, flags), flags));
}

async function admit(file: string, flags: AdmitFlags): Promise<void> {
  const pods = await readPods(file);
  const { stateDir, besideKubelet, isolation = 'never', output } = flags;
  const options = await managerOptions(flags);
  const manager = await openManager({
    ...options,
    devices: await devicesOf(flags),
    ...(stateDir !== undefined && { stateDir }),
    ...(besideKubelet !== undefined && { besideKubelet }),
  });
  try {
    openingLines(manager.warnings).forEach(tell);
    const admitted = await admitAll(manager, pods, { isolation, ...enforcementRequest(flags) });
    if (!admitted) return;
    const answers = admitted.map((pod, i) => {
      const { spec, request } = pods[i]!;
      return { pod, request, containers: explainedContainers(manager, spec, pod.containers) };
    });
    const text =
      output === 'json'
        ? formatJson({ pods: answers.map(podJson) })
        : fitted(answers.map((answer) => `${podLines(answer).join('\n')}\n`).join('\n'), stdoutPage());
    print(text);
  } finally {
    // No shared member is left behind.
    manager.close();
  }
}

/**
 * All or none: what was admitted before one is rejected is released, also where a signal ends this;
 * undefined then, and the exit code is set.
 */
async function admitAll(
  manager: Manager,
  pods: readonly FilePod[],
  request: RequestOptions,
): Promise<Pod[] | undefined> {
  const admitted: Pod[] = [];
  const { signal, stop } = abortedByEnd();
  let current: FilePod | undefined;
  try {
    for (current of pods) {
      admitted.push(await manager.admit(current.spec, { ...request, owner: 'persistent', signal }));
      signal.throwIfAborted();
    }
    return admitted;
  } catch (error) {
    const outcome = await takeBack(admitted);
    if (signal.aborted) {
      printToStderr(`${[`numalign: ended by ${signal.reason}`, ...outcome].join('\n')}\n`);
      stop();
      manager.close();
      // For where dying is not possible.
      process.exitCode = exitCodeOf(signal.reason as NodeJS.Signals);
      dieOf(signal.reason as NodeJS.Signals);
      return undefined;
    }
    throw error instanceof NumalignError ? failure(error, current!, outcome) : error;
  } finally {
    stop();
  }
}

// Says what became of them, in lines of their own.
async function takeBack(admitted: readonly Pod[]): Promise<string[]> {
  const released: string[] = [];
  const lines: string[] = [];
  for (const pod of admitted) {
    const { name, uid, alreadyAdmitted } = pod;
    if (alreadyAdmitted) continue;
    try {
      await pod.release();
      released.push(name);
    } catch (error) {
      lines.push(`pod ${name} stays admitted as ${uid}: ${(error as Error).message}`);
    }
  }
  if (released.length > 0) lines.unshift(`admitted before and released again: ${released.join(', ')}`);
  return lines.map(printable);
}

function failure(error: NumalignError, pod: FilePod, outcome: readonly string[]): NumalignError {
  const explanation = error.details.explanation as Explanation | undefined;
  const lines = [
    `${podTitle(pod.request)} is not admitted: ${explanation?.text ?? error.message}`,
    ...outcome,
  ];
  const message = lines.join(explanation ? '\n' : '; ');
  return new NumalignError(error.code, message, { ...error.details, cause: error });
}

/** The answer for one pod. */
interface PodAnswer {
  readonly pod: Pod;
  readonly request: PodRequest;
  readonly containers: readonly ExplainedContainer[];
}

function podJson({ pod, request: { qosClass }, containers }: PodAnswer) {
  return { ...pod.toJSON(), qosClass, containers };
}

function podLines({ pod, request, containers }: PodAnswer): string[] {
  const page = stdoutPage();
  return [
    page.colors.bold(`pod ${printable(pod.name)} (${request.qosClass})`),
    ...podTable(containers, page),
    ...sharedLines(containers),
    `${pod.alreadyAdmitted ? 'admitted already' : 'admitted'} as ${printable(pod.uid)}`,
    ...quietLines(pod.quiet),
    ...warningLines(pod.warnings),
  ];
}
