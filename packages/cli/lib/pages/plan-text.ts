// The plans of pods and workloads as text and as JSON. Pure.
import { cpusText, devicesText, memoryText } from '@numalign/page/words';
import type { PodPlan } from 'numalign/diagnostics';
import type { Topology } from 'numalign/topology';
import type { FilePod, FileWorkload } from '../arguments/pod-file.js';
import { table } from '../terminal/table.js';
import { type Page, PLAIN } from '../terminal/terminal.js';
import { listText, printable } from '../terminal/text.js';
import {
  choiceLines,
  type ExplainedContainer,
  podTable,
  podTitle,
  sharedLines,
  warningLines,
} from './pod-text.js';

/** The answer for one pod. */
export interface PlannedPod {
  readonly pod: FilePod;
  readonly plan: Omit<PodPlan, 'containers'> & { readonly containers: readonly ExplainedContainer[] };
}

/** The answers for the pods of a workload. */
export interface PlannedWorkload {
  readonly workload: FileWorkload;
  readonly pods: readonly PlannedPod[];
  /** What the claims of the pods get, each as a pod of one container. */
  readonly claims: readonly PlannedPod[];
}

export function planLines(planned: PlannedWorkload, topology: Topology, page: Page): string[] {
  const { claims, ...own } = planned;
  return [...claims.flatMap((claim) => claimLines(claim, page)), ...podsLines(own, topology, page)];
}

function claimLines({ plan }: PlannedPod, page: Page): string[] {
  const title = (page.colors ?? PLAIN).bold(printable(plan.uid));
  if (!plan.admitted) return [title, `rejected: ${explanationText(plan.explanation)}`, ''];
  return [title, ...podTable(plan.containers, page), ...warningLines(plan.warnings), ''];
}

type Pods = Omit<PlannedWorkload, 'claims'>;

function podsLines({ workload, pods }: Pods, topology: Topology, page: Page): string[] {
  const [first] = pods;
  if (!first) return [`${(page.colors ?? PLAIN).bold(workloadTitle(workload))} asks for no pods`];
  return pods.length === 1
    ? podLines(workload, first, page)
    : workloadLines({ workload, pods }, first, topology, page);
}

/** `Deployment web`. */
export function workloadTitle({ kind, name }: FileWorkload): string {
  return name === undefined ? `${kind} without a name` : `${kind} ${printable(name)}`;
}

/** The title of a pod; the uid of its plan for a pod without name and uid. */
export function planTitle({ pod: { request }, plan }: PlannedPod): string {
  return request.uid === undefined ? plan.uid : podTitle(request);
}

function podLines(workload: FileWorkload, answer: PlannedPod, page: Page): string[] {
  const { pod, plan } = answer;
  const of = workload.kind === 'Pod' ? '' : ` of ${workloadTitle(workload)}`;
  const title = (page.colors ?? PLAIN).bold(`${planTitle(answer)} (${pod.request.qosClass})${of}`);
  const { admitted, containers, explanation, warnings, exact, choice } = plan;
  if (!admitted) return [title, `rejected: ${explanationText(explanation)}`];
  return [
    title,
    ...podTable(containers, page),
    ...sharedLines(containers),
    howAdmitted(plan),
    ...choiceLines(choice),
    ...warningLines(warnings),
    ...(exact ? [] : [INEXACT]),
  ];
}

const INEXACT = 'With this many NUMA nodes numalign did not look at every hint: a better one may exist.';

function explanationText(explanation: PodPlan['explanation']): string {
  return (explanation?.text ?? '').split('\n').map(printable).join('\n');
}

function howAdmitted({ alreadyAdmitted, replaced, policy, scope }: PlannedPod['plan']): string {
  if (alreadyAdmitted) return `admitted already, under ${printable(policy)}, scope ${printable(scope)}`;
  const replacement = replaced ? ', in place of the pod on record' : '';
  return `admitted under ${policy}, scope ${scope}${replacement}`;
}

// One row for each pod.
function workloadLines(
  { workload, pods }: Pods,
  first: PlannedPod,
  topology: Topology,
  page: Page,
): string[] {
  const names = new Map(pods.map((each) => [each, printable(each.pod.request.name ?? each.plan.uid)]));
  const namesOf = (list: readonly PlannedPod[]) => list.map((each) => names.get(each)!);
  const fits = pods.filter(({ plan }) => plan.admitted);
  const { policy, scope } = first.plan;
  const { qosClass } = first.pod.request;
  const title = `${workloadTitle(workload)} (${qosClass}): ${fits.length} of ${pods.length} pods fit`;
  const warnings = new Set(fits.flatMap(({ plan }) => warningLines(plan.warnings)));
  const [rejected, ...others] = pods.filter(({ plan }) => !plan.admitted);
  const earlier = fits.filter(({ plan }) => plan.alreadyAdmitted);
  return [
    (page.colors ?? PLAIN).bold(title),
    ...(fits.length > 0 ? podsTable(fits, names, topology, page) : []),
    ...sharedLines(fits.flatMap(({ plan }) => plan.containers)),
    ...(earlier.length < fits.length
      ? [`admitted under ${printable(policy)}, scope ${printable(scope)}`]
      : []),
    ...(earlier.length > 0 ? [`admitted already: ${namesOf(earlier).join(', ')}`] : []),
    ...warnings,
    ...(fits.every(({ plan }) => plan.exact) ? [] : [INEXACT]),
    ...(rejected
      ? [
          `rejected: ${summary(namesOf([rejected, ...others]))}: ${explanationText(rejected.plan.explanation)}`,
        ]
      : []),
  ];
}

/** The first name, and the number of others. */
export function summary(names: readonly string[]): string {
  const [first, ...others] = names;
  return others.length === 0 ? first! : `${first} and ${others.length} more`;
}

function podsTable(
  pods: readonly PlannedPod[],
  names: ReadonlyMap<PlannedPod, string>,
  topology: Topology,
  page: Page,
): string[] {
  const hasMemory = pods.some(({ plan }) => plan.memory.length > 0);
  const hasDevices = pods.some(({ plan }) => Object.keys(plan.devices).length > 0);
  const titles = ['POD', 'CPUS', 'NUMA'];
  if (hasMemory) titles.push('MEMORY');
  if (hasDevices) titles.push('DEVICES');
  const rows = pods.map((pod) => {
    const { cpus, memory, devices } = pod.plan;
    return [
      names.get(pod)!,
      cpusText(cpus),
      cpus.isEmpty ? 'any' : listText(topology.nodesOf(cpus)),
      ...(hasMemory ? [memoryText(memory.filter(({ bytes }) => bytes > 0))] : []),
      ...(hasDevices ? [devicesText(devices)] : []),
    ];
  });
  return table(
    titles.map((title) => ({ title })),
    rows,
    page,
  );
}

/** The result for all pods, for each workload and for each pod. */
export function planJson(workloads: readonly PlannedWorkload[]) {
  const pods = workloads.flatMap((each) => each.pods);
  return {
    admitted: pods.every(({ plan }) => plan.admitted),
    workloads: workloads.map(({ workload: { kind, name, replicas }, pods }) => ({
      kind,
      name: name ?? null,
      replicas,
      pods: pods.length,
      fit: pods.filter(({ plan }) => plan.admitted).length,
    })),
    pods: pods.map(podJson),
    claims: workloads.flatMap(({ claims }) => claims).map(claimJson),
  };
}

const claimJson = ({ plan: { uid: name, admitted, cpus, memory } }: PlannedPod) => ({
  ...{ name, admitted, cpus, memory },
});

function podJson({ pod: { request }, plan }: PlannedPod) {
  const { uid, name, qosClass } = request;
  // Without what the containers show already.
  const { uid: planUid, cpus, memory, devices, alreadyAdmitted, replaced, policy, scope, ...answer } = plan;
  return {
    uid: uid ?? null,
    name: name ?? null,
    qosClass,
    alreadyAdmitted,
    replaced,
    policy,
    scope,
    ...answer,
  };
}
