// ContainerRequest: a container, as its runtime reports it -> what it asks of numalign. Pure.
import { CpuSet, type PodSpec } from 'numalign';
import type { RequestPlacementOptions } from 'numalign/tools';
import { isInPod } from '../cgroups/cgroup-path.js';
import type { Container, PodSandbox } from '../nri/messages.js';
import type { AffinityTerm } from './affinity.js';
import {
  CHOICE_ANNOTATION,
  checkAnnotationKeys,
  NO_WISHES,
  type RuntimeClasses,
  refuseAnnotations,
  type Wishes,
  wishesOf,
} from './annotations.js';
import { qosClassOf } from './qos-class.js';
import { checkHousekeeping, type QuietWish } from './quiet.js';
import { type Amounts, amountsOf } from './resources.js';
import { matching, type Rule, type Subject } from './rules.js';

/** What a container asks for. */
export interface ContainerRequest {
  /**
   * A pod of this one container, under {@link grantUid}. Null if nothing is to be granted: it
   * runs in the shared pool.
   */
  readonly pod: PodSpec | null;
  /** Whether its grant belongs to its pod, where it may start again. */
  readonly isOfPod: boolean;
  /** The number of exclusive CPUs; 0: it runs in the shared pool. */
  readonly exclusiveCpus: number;
  /** The ordinary memory to book, as a quantity; undefined: none. */
  readonly memory: string | number | undefined;
  /** The CPUs in the shared pool that its creator has chosen; null: all of them. */
  readonly chosenCpus: CpuSet | null;
  /** The CPU time that it requests, in thousandths of a CPU. */
  readonly millis: number;
  /** The only CPUs for exclusive ones; undefined: all. */
  readonly within: CpuSet | undefined;
  /** The options of its rule, and of its annotations, which take precedence. */
  readonly placement: RequestPlacementOptions;
  readonly cdi: boolean;
  /** Undefined also without exclusive CPUs. */
  readonly quiet?: QuietWish | undefined;
  /** Empty also without exclusive CPUs. */
  readonly affinity?: readonly AffinityTerm[] | undefined;
  readonly classes?: RuntimeClasses;
  /** The rule that it follows. */
  readonly rule: Rule | undefined;
}

/** The name of its grant: for people, and to distinguish a plugin's grants from others'. */
export const grantName = (prefix: string, pod: PodSandbox, container: Pick<Container, 'name'>) =>
  // In one piece: V8 keeps the parts of a template beside the whole.
  [prefix, ':', pod.namespace || 'default', '/', pod.name, '/', container.name].join('');

/**
 * The uid of a container's grant. A kubelet starts a container again as another one: both have the
 * grant of their pod and name. Other containers have a grant each, under their id.
 */
export const grantUid = (pod: Pick<PodSandbox, 'uid'>, { id, name, linux }: Container): string =>
  isInPod(linux?.cgroups_path ?? '', pod.uid) ? podGrantUid(pod.uid, name) : id;

/** The uid of the grant of a pod's container. Names have no dots. */
export const podGrantUid = (podUid: string, name: string) => `${podUid}.${name}`;

/** Whether a grant is of this pod, or of a container of it, which may start again. */
export const isGrantOfPod = (uid: string, podUid: string): boolean =>
  podUid !== '' && (uid === podUid || uid.slice(0, Math.max(0, uid.lastIndexOf('.'))) === podUid);

/** What rules are matched by. */
export const ruleSubject = (pod: PodSandbox, { name, linux, ...container }: Container): Subject => ({
  namespace: pod.namespace || 'default',
  container: name,
  labels: { ...pod.labels, ...container.labels },
  annotations: { ...pod.annotations, ...container.annotations },
  qosClass: qosClassOf(pod, amountsOf(linux?.resources)),
});

/**
 * What a new container asks for, by the first rule that matches it.
 * @throws NodeError ERR_INVALID_ANNOTATION, also for annotations that its rule does not allow
 */
export function askedRequest(
  prefix: string,
  pod: PodSandbox,
  container: Container,
  rules: readonly Rule[],
): ContainerRequest {
  checkAnnotationKeys(pod, container);
  const rule = matching(rules, ruleSubject(pod, container));
  if (rule?.annotations === false) refuseAnnotations(rule.name, pod, container);
  return containerRequest(prefix, pod, container, rule);
}

/**
 * Containers come one after the other, and a runtime does not announce the next ones: each is a
 * separate pod for the managers, unless the whole pod is known (whole-pod.ts). An init container has
 * ended when the next one is created; sidecars stay.
 * @throws NodeError ERR_INVALID_ANNOTATION
 */
export function containerRequest(
  prefix: string,
  pod: PodSandbox,
  container: Container,
  rule?: Rule,
): ContainerRequest {
  const wishes = rule?.annotations === false ? NO_WISHES : wishesOf(pod, container);
  const resources = container.linux?.resources;
  const amounts = amountsOf(resources);
  const wanted = wishes.cpu ?? cpusByRule(rule, amounts);
  const qosClass = wanted ? 'Guaranteed' : wanted === 0 ? 'Burstable' : qosClassOf(pod, amounts);
  const isGuaranteed = qosClass === 'Guaranteed';
  const limits = {
    ...wishes.devices,
    ...(isGuaranteed && guaranteedAmounts(amounts, wanted, wishes.memory)),
  };
  const isNeeded = Object.keys(limits).length > 0;
  const cpu = isGuaranteed ? limits.cpu : undefined;
  const exclusiveCpus = typeof cpu === 'number' && Number.isInteger(cpu) ? cpu : 0;
  const name = grantName(prefix, pod, container);
  const chosenCpus = container.annotations[CHOICE_ANNOTATION] ?? resources?.cpu?.cpus ?? '';
  const uid = grantUid(pod, container);
  return {
    pod: isNeeded ? { uid, name, qosClass, containers: [{ name: 'main', limits }] } : null,
    isOfPod: uid !== container.id,
    exclusiveCpus,
    memory: isGuaranteed ? limits.memory : undefined,
    chosenCpus: exclusiveCpus > 0 || chosenCpus === '' ? null : CpuSet.parse(chosenCpus),
    millis: amounts.requestMillis ?? amounts.limitMillis ?? 0,
    within: rule?.cpus,
    placement: { ...rule?.placement, ...optionsOf(wishes) },
    cdi: wishes.cdi,
    classes: wishes.classes,
    ...(exclusiveCpus > 0 && ofExclusiveCpus(wishes, exclusiveCpus)),
    rule,
  };
}

// Annotations of a pod count for all of its containers, also for those in the shared pool.
function ofExclusiveCpus({ quiet, affinity }: Wishes, exclusiveCpus: number) {
  if (quiet) checkHousekeeping(quiet, exclusiveCpus);
  return { quiet, affinity };
}

const optionsOf = ({ smt, coreKind, memoryTiers }: Wishes): RequestPlacementOptions => ({
  ...(smt && { smt }),
  ...(coreKind && { coreKind }),
  ...(memoryTiers && { memoryTiers }),
});

// The least shares that a kubelet sets: nothing is requested.
const NOTHING_MILLIS = 2;

/** Undefined: as without a rule. */
function cpusByRule(rule: Rule | undefined, { limitMillis, requestMillis = 0 }: Amounts): number | undefined {
  if (rule?.exclusive === true) {
    const millis = limitMillis ?? requestMillis;
    return millis > NOTHING_MILLIS ? Math.ceil(millis / 1000) : 0;
  }
  return rule?.exclusive === false ? 0 : rule?.exclusive;
}

function guaranteedAmounts(
  { requestMillis, limitMillis, memoryBytes, hugepages }: Amounts,
  cpus: number | undefined,
  quantity: string | undefined,
) {
  // A kubelet that enforces no quotas only sets the shares.
  const millis = limitMillis ?? requestMillis;
  const cpu = cpus ?? (millis === undefined ? undefined : millis / 1000);
  const memory = quantity ?? memoryBytes;
  return {
    ...(cpu !== undefined && { cpu }),
    ...(memory !== undefined && { memory }),
    ...hugepages,
  } as Record<string, number | string>;
}
