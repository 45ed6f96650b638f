// numalign plan: whether pods would be admitted, and where they would go. Only looks.
import type { Command } from 'commander';
import type { PodPlan, StateStatus } from '../../entries/diagnostics.js';
import type { Topology } from '../../entries/topology.js';
import type { IsolationChoice, ManagerOptions, ManagerView, MemoryTable } from '../../index.js';
import { outputOption } from '../arguments/arguments.js';
import { type DeviceFlags, deviceOptions, devicesOf } from '../arguments/devices.js';
import { inPlace } from '../arguments/documents.js';
import { managerOptions, type PlacementFlags, placementOptions } from '../arguments/placement.js';
import { type FilePod, fileOf, podFileOption, readPods } from '../arguments/pod-file.js';
import { stateDirOption } from '../arguments/state-dir.js';
import { ofOneGeneration, unlessClosed, withView } from '../arguments/view.js';
import { type MachineFlags, machineOf, machineOptions } from '../pages/machine.js';
import {
  type ExplainedContainer,
  explainedContainers,
  podTable,
  podTitle,
  sharedLines,
  warningLines,
} from '../pages/pod-text.js';
import { holdingsWith } from '../picture/holdings.js';
import { machinePicture } from '../picture/machine-picture.js';
import { tell } from '../terminal/output.js';
import { checkSvg, printWithSvg, type SvgFlags, svgOption } from '../terminal/svg-file.js';
import { type Page, PLAIN, stdoutPage } from '../terminal/terminal.js';
import { fitted, formatJson, printable } from '../terminal/text.js';

interface PlanFlags extends PlacementFlags, DeviceFlags, MachineFlags, SvgFlags {
  file?: string;
  stateDir?: string;
}

/** The answer for one pod. */
interface PlannedPod {
  readonly pod: FilePod;
  readonly plan: Omit<PodPlan, 'containers'> & { readonly containers: readonly ExplainedContainer[] };
}

/** All answers, and the state that they are for. */
interface Planned {
  readonly pods: readonly PlannedPod[];
  readonly status: StateStatus;
  /** As it would be. */
  readonly memory: readonly MemoryTable[];
}

const REJECTED = 1;

export function addPlan(program: Command): void {
  const command: Command = program
    .command('plan')
    .description(
      'Say whether pods would be admitted, and where they would go, on this machine or on a described one.',
    )
    .usage('-f <file> [options]')
    .addOption(podFileOption());
  for (const option of [...placementOptions(), ...deviceOptions(), ...machineOptions()])
    command.addOption(option);
  command
    .addOption(stateDirOption())
    .addOption(outputOption())
    .addOption(svgOption())
    .addHelpText(
      'after',
      `
Only looks: no state folder is made, locked or changed. On this machine the recorded settings and grants count; a described machine
is empty. Several pods are planned one on top of the other; one that is rejected takes nothing, and the next is planned without it.

Exit code: 0 where all pods would be admitted; 1 where one would not, and for an error; 2 for a wrong command line.

Examples:
  $ numalign plan -f pod.yaml
  $ numalign plan -f pod.yaml --policy single-numa-node --cpu-option full-pcpus-only
  $ numalign plan -f pod.yaml --device example.com/nic=class:0200,vendor:8086
  $ numalign plan -f pod.yaml --config kubelet.yaml --synthetic 'package:2 numa:2 core:16 pu:2'
  $ numalign plan -f pod.yaml --svg plan.svg
  $ kubectl get pod web -o yaml | numalign plan -f - --output json | jq .pods[0].containers`,
    )
    .action((flags: PlanFlags) => {
      checkSvg(command, flags);
      return showPlan(fileOf(command, flags), flags);
    });
}

async function showPlan(file: string, flags: PlanFlags): Promise<void> {
  const pods = await readPods(file);
  const options = { ...(await managerOptions(flags)), devices: await devicesOf(flags) };
  const topology = await machineOf(flags);
  const planned = await planAll(pods, flags, topology, options);
  const isAdmitted = planned.pods.every(({ plan: { admitted } }) => admitted);
  const text = () =>
    flags.output === 'json'
      ? formatJson({ admitted: isAdmitted, pods: planned.pods.map(planJson) })
      : planned.pods.map((answer) => planText(answer, stdoutPage())).join('\n');
  await printWithSvg(text, flags.svg, () => pictureOf(planned, topology));
  if (!isAdmitted) process.exitCode = REJECTED;
}

function pictureOf({ pods, status, memory }: Planned, topology: Topology): string {
  const titles = new Map(pods.map(({ pod, plan }) => [plan.uid, podTitle(pod.request)]));
  const plans = pods.map(({ plan }) => plan);
  const rejected = plans.filter(({ admitted }) => !admitted).map(({ uid }) => titles.get(uid));
  return machinePicture(topology, {
    holdings: holdingsWith(status, plans, memory, ({ uid, alreadyAdmitted }) => {
      return `${titles.get(uid)} (${alreadyAdmitted ? 'admitted already' : 'planned'})`;
    }),
    ...(rejected.length > 0 && { note: `rejected: ${rejected.join(', ')}` }),
  });
}

// Where the machine's state is closed to us, as if nothing were granted.
async function planAll(
  pods: readonly FilePod[],
  { stateDir, isolation = 'never' }: PlanFlags,
  topology: Topology,
  options: ManagerOptions,
): Promise<Planned> {
  const planIn = (view: ManagerView) => planWith(view, pods, isolation);
  if (topology.isSimulated) return withView({ ...options, topology }, planIn);
  const { seen, closed } = await unlessClosed(stateDir, (path) =>
    withView({ ...options, topology, stateDir: path }, planIn),
  );
  if (!closed) return seen;
  tell(`planned as if nothing were granted, which is not known: ${closed.message}`);
  return withView({ ...options, topology, stateDir: null }, planIn);
}

function planWith(view: ManagerView, pods: readonly FilePod[], isolation: IsolationChoice): Planned {
  const { status, planner } = ofOneGeneration(view, () => groundOf(view));
  const answers = pods.map((pod): PlannedPod => {
    const plan = inPlace(pod.place, () => planner.plan(pod.spec, { owner: 'persistent', isolation }));
    return { pod, plan: { ...plan, containers: explainedContainers(view, pod.spec, plan.containers) } };
  });
  return { pods: answers, status, memory: planner.memory() };
}

function groundOf(view: ManagerView) {
  const status = view.status();
  if (status.refusal) throw status.refusal;
  return { status, planner: view.planner() };
}

function planText(answer: PlannedPod, page: Page): string {
  return fitted(`${planLines(answer, page).join('\n')}\n`, page);
}

function planLines({ pod: { request }, plan }: PlannedPod, page: Page) {
  const title = (page.colors ?? PLAIN).bold(`${podTitle(request)} (${request.qosClass})`);
  const { admitted, alreadyAdmitted, policy, scope, containers, explanation, warnings, exact } = plan;
  if (!admitted)
    return [title, `rejected: ${(explanation?.text ?? '').split('\n').map(printable).join('\n')}`];
  return [
    title,
    ...podTable(containers, page),
    ...sharedLines(containers),
    alreadyAdmitted
      ? `admitted already, under ${printable(policy)}, scope ${printable(scope)}`
      : `admitted under ${policy}, scope ${scope}`,
    ...warningLines(warnings),
    ...(exact ? [] : ['On so many NUMA nodes not every hint was looked at: a better one may exist.']),
  ];
}

function planJson({ pod: { request }, plan }: PlannedPod) {
  const { uid, name, qosClass } = request;
  // What the containers have says it already.
  const { uid: planned, cpus, memory, devices, alreadyAdmitted, policy, scope, ...answer } = plan;
  return { uid: uid ?? null, name: name ?? null, qosClass, alreadyAdmitted, policy, scope, ...answer };
}
