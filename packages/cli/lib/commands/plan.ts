// numalign plan: shows whether pods would be admitted, and where they would go. It only reads.
import { DEVICE_UNITS, type DeviceUnit } from '@numalign/claims';
import { type Command, Option } from 'commander';
import { CpuSet, type ManagerOptions, type ManagerView, type MemoryTable } from 'numalign';
import type { PlannerOptions, StateStatus } from 'numalign/diagnostics';
import { withUid } from 'numalign/tools';
import type { Topology } from 'numalign/topology';
import { outputOption } from '../arguments/arguments.js';
import { type DeviceFlags, deviceOptions, devicesOf } from '../arguments/devices.js';
import { checkStandardInput, inPlace } from '../arguments/documents.js';
import {
  managerOptions,
  type PlacementFlags,
  placementOf,
  placementOptions,
} from '../arguments/placement-flags.js';
import { type FilePod, type FileWorkload, podFileOption, readWorkloads } from '../arguments/pod-file.js';
import {
  exclusiveOption,
  type PodFlags,
  podOfFlags,
  podOptions,
  replicasOption,
} from '../arguments/pod-flags.js';
import { stateDirOption } from '../arguments/state-dir.js';
import { ofOneGeneration, unlessClosed, withView } from '../arguments/view.js';
import { ClaimObjects, isOfClaims } from '../claims/claim-objects.js';
import { ClaimPlanner } from '../claims/claim-planner.js';
import type { SharingPod } from '../claims/claimed-pod.js';
import { openGate } from '../gate/gate.js';
import {
  kindsNote,
  type MachineFlags,
  machineOf,
  machineOptions,
  withLikelyKinds,
} from '../pages/machine.js';
import {
  type PlannedPod,
  type PlannedWorkload,
  planJson,
  planLines,
  planTitle,
  summary,
} from '../pages/plan-text.js';
import { explainContainers } from '../pages/pod-text.js';
import { tell } from '../terminal/output.js';
import { checkSvg, printWithSvg, type SvgFlags, svgOption } from '../terminal/svg-file.js';
import { stdoutPage } from '../terminal/terminal.js';
import { fitPage, formatJson } from '../terminal/text.js';

interface PlanFlags extends PodFlags, PlacementFlags, DeviceFlags, MachineFlags, SvgFlags {
  file?: string[];
  replicas?: number;
  replace?: boolean;
  lenient?: boolean;
  exclusiveContainer?: string;
  stateDir?: string;
  draDevices?: DeviceUnit;
}

/** All answers, and the state behind them. */
interface PlanResult {
  readonly workloads: readonly PlannedWorkload[];
  readonly status: StateStatus;
  /** The memory with all planned pods. */
  readonly memory: readonly MemoryTable[];
}

const REJECTED = 1;
// The most names in a picture's note.
const MOST_NAMES = 5;

export function addPlan(program: Command): void {
  const command: Command = program
    .command('plan')
    .description(
      'Show whether pods would be admitted, and where they would go, on this machine or on one that you describe.',
    )
    .usage('-f <file> | --cpus <n> [options]')
    .addOption(podFileOption());
  const request = [...podOptions(), replicasOption()];
  for (const option of [...request, ...placementOptions(), ...deviceOptions(), ...machineOptions()])
    command.addOption(option);
  command
    .option('--replace', 'if an admitted pod now requests something else, plan that in its place')
    .option(
      '--lenient',
      'plan what a kubelet or a cluster would refuse too, as far as numalign understands it',
    )
    .addOption(exclusiveOption())
    .addOption(
      new Option(
        '--dra-devices <unit>',
        'what a device for ResourceClaims is, as of numalign-node (default: node)',
      ).choices(DEVICE_UNITS),
    )
    .addOption(stateDirOption())
    .addOption(outputOption())
    .addOption(svgOption())
    .addHelpText(
      'after',
      `
A KubeletConfiguration with which that kubelet would not start, and manifests that the API server would refuse or that ask for devices of no
machine, are refused: one pass names all that is wrong, with line and column.

Reads only: plan makes, locks and changes no state folder. On this machine the recorded settings and grants count. A machine that you describe
is empty. Each pod is planned beside the pods before it. A rejected pod takes nothing.

A Deployment, ReplicaSet or StatefulSet counts as its replicas, a Job or CronJob as the pods that run at a time, a DaemonSet as one pod.
--cpus plans one pod of one container, without a file.

ResourceClaims, ResourceClaimTemplates and DeviceClasses of the files are planned on numalign's own devices, before the pods that use them. Selectors
may have comparisons, &&, ||, !, in, lists, and quantities with compareTo(), isLessThan() and isGreaterThan(). What goes beyond, and devices of other
drivers, is named as not planned.

JSON: admitted, workloads (kind, name, replicas, pods, fit), pods (in the order of the workloads, with qosClass, and whyShared of each container), claims (in
the order of their pods: name, admitted, cpus, memory).

Exit code: 0 if all pods would be admitted; 1 if one would be rejected, and for an error; 2 for a wrong command line.

Examples:
  $ numalign plan -f pod.yaml
  $ numalign plan -f deployment.yaml --replicas 10
  $ numalign plan --cpus 4 --memory 2Gi --policy single-numa-node
  $ numalign plan -f pod.yaml --policy single-numa-node --cpu-option full-pcpus-only
  $ numalign plan -f pod.yaml --device example.com/nic=class:0200,vendor:8086
  $ numalign plan -f pod.yaml --config kubelet.yaml --synthetic 'package:2 numa:2 core:16 pu:2'
  $ numalign plan -f pod.yaml --svg plan.svg
  $ kubectl get pod web -o yaml | numalign plan -f - --output json | jq .pods[0].containers`,
    )
    .action((flags: PlanFlags) => {
      checkSvg(command, flags);
      const pod = podOfFlags(command, flags);
      checkStandardInput(command, flags);
      return showPlan(pod, flags);
    });
}

async function showPlan(pod: FileWorkload | undefined, flags: PlanFlags): Promise<void> {
  const devices = await devicesOf(flags);
  const described = await machineOf(flags);
  const gate = flags.lenient ? undefined : openGate(flags, { topology: described, devices });
  const options = { ...(await managerOptions(flags, gate?.configuration)), devices };
  const objects = new ClaimObjects();
  const reader = { read: objects.read, isRead: isOfClaims };
  const workloads = pod ? [pod] : await readWorkloads(flags.file!, flags.replicas, gate?.manifests, reader);
  gate?.manifests.end();
  const note = options.coreKind === 'any' ? undefined : kindsNote(described);
  if (note !== undefined) tell(note);
  const topology = note === undefined ? described : await withLikelyKinds(described);
  const result = await planAll({ workloads, objects }, flags, topology, options);
  const answer = planJson(result.workloads);
  const page = stdoutPage();
  const text = () =>
    flags.output === 'json'
      ? formatJson(answer)
      : result.workloads
          .map((workload) => fitPage(`${planLines(workload, topology, page).join('\n')}\n`, page))
          .join('\n');
  await printWithSvg(text, flags.svg, () => pictureOf(result, topology));
  if (!answer.admitted) process.exitCode = REJECTED;
}

async function pictureOf({ workloads, status, memory }: PlanResult, topology: Topology): Promise<string> {
  const { holdingsWith, machinePicture } = await import('@numalign/page/picture');
  const pods = workloads.flatMap(({ claims, pods }) => [...claims, ...pods]);
  const titles = new Map(pods.map(({ pod, plan }) => [plan.uid, planTitle({ pod, plan })]));
  const plans = pods.map(({ plan }) => plan);
  const titlesOfRejected = pods.filter(({ plan }) => !plan.admitted).map(planTitle);
  const replacedUids = new Set(plans.filter((plan) => plan.replaced).map(({ uid }) => uid));
  const others = { ...status, grants: status.grants.filter(({ uid }) => !replacedUids.has(uid)) };
  return machinePicture(topology, {
    holdings: holdingsWith(others, plans, memory, ({ uid, alreadyAdmitted }) => {
      return `${titles.get(uid)} (${alreadyAdmitted ? 'admitted already' : 'planned'})`;
    }),
    ...(titlesOfRejected.length > 0 && {
      note: `rejected: ${titlesOfRejected.length > MOST_NAMES ? summary(titlesOfRejected) : titlesOfRejected.join(', ')}`,
    }),
  });
}

interface Asked {
  readonly workloads: readonly FileWorkload[];
  readonly objects: ClaimObjects;
}

// If the machine's state is closed to this user, plans as if nothing were granted.
async function planAll(
  asked: Asked,
  { stateDir, replace = false, mixed = false, exclusiveContainer, draDevices = 'node', ...flags }: PlanFlags,
  topology: Topology,
  options: ManagerOptions,
): Promise<PlanResult> {
  const own = placementOf(flags, ['request']);
  const exclusive = exclusiveContainer !== undefined && { exclusiveContainer };
  const request: PlannerOptions = { owner: 'persistent', replace, mixed, ...exclusive, ...own };
  const planIn = (view: ManagerView) => planWith(view, { ...asked, unit: draDevices }, request);
  if (topology.isSimulated) return withView({ ...options, topology }, planIn);
  const { result, closed } = await unlessClosed(stateDir, (path) =>
    withView({ ...options, topology, stateDir: path }, planIn),
  );
  if (!closed) return result;
  const plans = await withView({ ...options, topology, stateDir: null }, planIn);
  tell(`planned as if nothing were granted, since the state cannot be read: ${closed.message}`);
  return plans;
}

function planWith(
  view: ManagerView,
  { workloads, objects, unit }: Asked & { readonly unit: DeviceUnit },
  request: PlannerOptions,
): PlanResult {
  const { status, planner } = ofOneGeneration(view, () => statusAndPlanner(view));
  const recordedUids = new Set(status.grants.map(({ uid }) => uid));
  const nextUid = uidsWithoutName(workloads.flatMap(({ pods }) => pods).length, recordedUids);
  const planPod = ({ pod, claimOf }: SharingPod, uid: string): PlannedPod => {
    const plan = inPlace(pod.place, () => planner.plan(withUid(pod.spec, uid), request));
    const containers = explainContainers(view, pod.spec, plan.containers).map((each) => {
      const claim = claimOf.get(each.name);
      return claim === undefined
        ? each
        : { ...each, whyShared: `container ${each.name}: it has those of claim ${claim}` };
    });
    return { pod, plan: { ...plan, containers } };
  };
  const claimPlanner = new ClaimPlanner({ view, planner, objects, unit, request, note: tell });
  const answers = workloads.map((workload): PlannedWorkload => {
    const claims: PlannedPod[] = [];
    let rejection: PlannedPod['plan'] | undefined;
    const pods = workload.pods.map((pod): PlannedPod => {
      const uid = pod.request.uid ?? nextUid();
      // The pods of a workload request the same, and a rejection changes nothing.
      if (rejection && !recordedUids.has(uid)) return { pod, plan: { ...rejection, uid } };
      const claimed = claimPlanner.plan(pod);
      claims.push(...claimed.claims);
      const answer =
        claimed.rejection === undefined ? planPod(claimed, uid) : rejectedFor(claimed.rejection, pod, uid);
      if (!answer.plan.admitted) rejection = answer.plan;
      return answer;
    });
    return { workload, pods, claims };
  });
  return { workloads: answers, status, memory: planner.memory() };
}

/** A pod that does not run for want of a claim. */
function rejectedFor(why: string, pod: FilePod, uid: string): PlannedPod {
  const reason = 'UnexpectedAdmissionError';
  const explanation = {
    ...{ reason, container: null, policy: 'none', resources: [], admittedUnder: [] },
    text: why,
  } as const;
  const nothing = { containers: [], cpus: CpuSet.EMPTY, memory: [], devices: {}, hints: [], warnings: [] };
  const plan = {
    admitted: false,
    reason,
    code: null,
    explanation,
    repacking: null,
    exact: true,
    choice: null,
  };
  const where = { uid, alreadyAdmitted: false, replaced: false, policy: 'none', scope: 'container' };
  return { pod, plan: { ...plan, ...nothing, ...where } as PlannedPod['plan'] };
}

// Names for pods without a name, in the answer and in its explanations.
function uidsWithoutName(count: number, recordedUids: ReadonlySet<string>): () => string {
  let last = 0;
  const next = () => `pod ${++last}`;
  return () => {
    if (count === 1) return 'pod without a name';
    let uid = next();
    while (recordedUids.has(uid)) uid = next();
    return uid;
  };
}

function statusAndPlanner(view: ManagerView) {
  const status = view.status();
  if (status.refusal) throw status.refusal;
  return { status, planner: view.planner() };
}
