// numalign plan: whether pods would be admitted, and where they would go. Only looks.
import { randomUUID } from 'node:crypto';
import type { Command } from 'commander';
import type { Assignments } from '../../account/assignments.js';
import { cpusNow } from '../../account/cpus-now.js';
import type { CpuSnapshot } from '../../account/pools.js';
import { PERSISTENT_OWNER, placedPod } from '../../admission/admit.js';
import { plan, planOfPlaced } from '../../admission/plan.js';
import { checkRecorded, firstState } from '../../decision/machine-settings.js';
import { NEVER } from '../../decision/place.js';
import type { Topology } from '../../entries/topology.js';
import type { IsolationChoice, Plan } from '../../index.js';
import { type Config, parseConfig } from '../../input/config.js';
import { checkPlacement } from '../../input/placement.js';
import { parseAdmit } from '../../input/request.js';
import { deviceResources } from '../../opening/site.js';
import { outputOption } from '../arguments/arguments.js';
import { type DeviceFlags, deviceOptions, devicesOf } from '../arguments/devices.js';
import { inPlace } from '../arguments/documents.js';
import { managerOptions, type PlacementFlags, placementOptions } from '../arguments/placement.js';
import { type FilePod, fileOf, podFileOption, readPods } from '../arguments/pod-file.js';
import { MACHINE_STATE_DIR, stateDirOption } from '../arguments/state-dir.js';
import { type MachineFlags, machineOf, machineOptions } from '../pages/machine.js';
import {
  type ExplainedContainer,
  explainedContainers,
  podTable,
  podTitle,
  sharedLines,
  warningLines,
} from '../pages/pod-text.js';
import { lookAt } from '../pages/state-view.js';
import { holdingsOfPlan } from '../picture/holdings.js';
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
interface PodPlan {
  readonly pod: FilePod;
  /** In the state, where it is admitted. */
  readonly uid: string;
  /** It was there before: it keeps what it has. */
  readonly isPlaced: boolean;
  readonly policy: string;
  readonly scope: string;
  readonly plan: Omit<Plan, 'containers'> & { readonly containers: readonly ExplainedContainer[] };
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
  const { stateDir } = flags;
  const config = parseConfig({
    ...(await managerOptions(flags)),
    devices: await devicesOf(flags),
    ...(stateDir !== undefined && { stateDir }),
  });
  const topology = await machineOf(flags);
  checkPlacement(config.placement, topology);
  const { plans, state, present } = planAll(pods, config, topology, flags.isolation ?? 'never');
  const isAdmitted = plans.every(({ plan: { admitted } }) => admitted);
  const text = () =>
    flags.output === 'json'
      ? formatJson({ admitted: isAdmitted, pods: plans.map(planJson) })
      : plans.map((answer) => planText(answer, stdoutPage())).join('\n');
  await printWithSvg(text, flags.svg, () => pictureOf(plans, state, present, topology));
  if (!isAdmitted) process.exitCode = REJECTED;
}

function pictureOf(
  plans: readonly PodPlan[],
  state: Assignments,
  present: CpuSnapshot,
  topology: Topology,
): string {
  const planned = new Map(
    plans.map(({ uid, pod, isPlaced }) => [
      uid,
      `${podTitle(pod.request)} (${isPlaced ? 'admitted already' : 'planned'})`,
    ]),
  );
  const rejected = plans
    .filter(({ plan: { admitted } }) => !admitted)
    .map(({ pod }) => podTitle(pod.request));
  return machinePicture(topology, {
    holdings: holdingsOfPlan(state, topology, present, planned),
    ...(rejected.length > 0 && { note: `rejected: ${rejected.join(', ')}` }),
  });
}

/** The answers, and the state with what is admitted. */
function planAll(
  pods: readonly FilePod[],
  config: Config,
  topology: Topology,
  isolation: IsolationChoice,
): Site & { plans: PodPlan[] } {
  const site = siteOf(config, topology);
  const { present } = site;
  let { state } = site;
  const resources = deviceResources(config, topology);
  const plans = pods.map((pod): PodPlan => {
    const request = parseAdmit(pod.spec, { owner: 'persistent', isolation }, config.placement);
    const { topologyPolicy, scope } = request.placement;
    const explained = (answer: Plan) => ({
      ...answer,
      containers: explainedContainers(answer.containers, request.pod, config.placement),
    });
    const placed = inPlace(pod.place, () => placedPod(state, request.pod));
    if (placed) {
      const { policy } = placed;
      return {
        pod,
        uid: placed.uid,
        isPlaced: true,
        policy,
        scope: placed.scope,
        plan: explained(planOfPlaced(placed)),
      };
    }
    const uid = pod.request.uid ?? randomUUID();
    const question = {
      topology,
      present,
      state,
      request,
      resources,
      providers: [],
      owner: PERSISTENT_OWNER,
      uid,
      trialUid: uid,
    };
    const planned = plan({ ...question, now: NEVER, dryRun: true });
    state = planned.next ?? state;
    return { pod, uid, isPlaced: false, policy: topologyPolicy, scope, plan: explained(planned.plan) };
  });
  return { plans, state, present };
}

/** What pods are planned on. */
interface Site {
  readonly state: Assignments;
  readonly present: CpuSnapshot;
}

/** Checked as openManager and an admission check it. */
function siteOf(config: Config, topology: Topology): Site {
  const { stateDir = MACHINE_STATE_DIR } = config;
  const { view, closed } = topology.isSimulated ? {} : lookAt(config.stateDir, topology);
  if (closed !== undefined) tell(`planned as if nothing were granted, which is not known: ${closed}`);
  if (!view) {
    const present = cpusNow(topology);
    return { state: firstState(config, topology, present), present };
  }
  const { assignments, present, refusal } = view;
  checkRecorded(assignments, config, topology, present, stateDir);
  if (refusal) throw refusal;
  return { state: assignments, present };
}

function planText(answer: PodPlan, page: Page): string {
  return fitted(`${planLines(answer, page).join('\n')}\n`, page);
}

function planLines({ pod: { request }, isPlaced, policy, scope, plan: answer }: PodPlan, page: Page) {
  const title = (page.colors ?? PLAIN).bold(`${podTitle(request)} (${request.qosClass})`);
  const { admitted, containers, explanation, warnings, exact } = answer;
  if (!admitted)
    return [title, `rejected: ${(explanation?.text ?? '').split('\n').map(printable).join('\n')}`];
  return [
    title,
    ...podTable(containers, page),
    ...sharedLines(containers),
    isPlaced
      ? `admitted already, under ${printable(policy)}, scope ${printable(scope)}`
      : `admitted under ${policy}, scope ${scope}`,
    ...warningLines(warnings),
    ...(exact ? [] : ['On so many NUMA nodes not every hint was looked at: a better one may exist.']),
  ];
}

function planJson({ pod: { request }, isPlaced, policy, scope, plan: answer }: PodPlan) {
  const { uid, name, qosClass } = request;
  return {
    uid: uid ?? null,
    name: name ?? null,
    qosClass,
    alreadyAdmitted: isPlaced,
    policy,
    scope,
    ...answer,
  };
}
