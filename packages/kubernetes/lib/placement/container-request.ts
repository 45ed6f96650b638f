// ContainerRequest: a container, as its runtime reports it -> what it asks of numalign. Pure.
import { CpuSet, type PodSpec } from 'numalign';
import { isInPod } from '../cgroups/cgroup-path.js';
import type { Container, PodSandbox } from '../nri/messages.js';
import type { AffinityTerm } from './affinity.js';
import { CHOICE_ANNOTATION, type RuntimeClasses, type Wishes, wishesOf } from './annotations.js';
import { qosClassOf } from './qos-class.js';
import { checkHousekeeping, type QuietWish } from './quiet.js';
import { type Amounts, amountsOf } from './resources.js';

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
  readonly smt: 'hold-sibling' | undefined;
  readonly coreKind: Wishes['coreKind'];
  readonly memoryTiers: Wishes['memoryTiers'];
  readonly cdi: boolean;
  /** Undefined also without exclusive CPUs. */
  readonly quiet?: QuietWish | undefined;
  /** Empty also without exclusive CPUs. */
  readonly affinity?: readonly AffinityTerm[];
  readonly classes?: RuntimeClasses;
}

/** The name of its grant: for people, and to distinguish a plugin's grants from others'. */
export const grantName = (prefix: string, pod: PodSandbox, container: Pick<Container, 'name'>) =>
  `${prefix}:${pod.namespace || 'default'}/${pod.name}/${container.name}`;

/**
 * The uid of a container's grant. A kubelet starts a container again as another one: both have the
 * grant of their pod and name. Other containers have a grant each, under their id.
 */
export const grantUid = (pod: Pick<PodSandbox, 'uid'>, { id, name, linux }: Container): string =>
  isInPod(linux?.cgroups_path ?? '', pod.uid) ? podGrantUid(pod.uid, name) : id;

/** The uid of the grant of a pod's container. Names have no dots. */
export const podGrantUid = (podUid: string, name: string) => `${podUid}.${name}`;

/** Whether a grant is of a container of this pod, which may start again. */
export const isGrantOfPod = (uid: string, podUid: string): boolean =>
  podUid !== '' && uid.slice(0, Math.max(0, uid.lastIndexOf('.'))) === podUid;

/**
 * Containers come one after the other, and a runtime does not announce the next ones: each is a
 * separate pod for the managers. An init container has ended when the next one is created; sidecars
 * stay.
 * @throws NodeError ERR_INVALID_ANNOTATION
 */
export function containerRequest(prefix: string, pod: PodSandbox, container: Container): ContainerRequest {
  const wishes = wishesOf(pod, container);
  const resources = container.linux?.resources;
  const amounts = amountsOf(resources);
  const qosClass = wishes.cpu ? 'Guaranteed' : wishes.cpu === 0 ? 'Burstable' : qosClassOf(pod, amounts);
  const isGuaranteed = qosClass === 'Guaranteed';
  const limits = { ...wishes.devices, ...(isGuaranteed && guaranteedAmounts(amounts, wishes)) };
  const isNeeded = Object.keys(limits).length > 0;
  const cpu = isGuaranteed ? limits.cpu : undefined;
  const exclusiveCpus = typeof cpu === 'number' && Number.isInteger(cpu) ? cpu : 0;
  const name = grantName(prefix, pod, container);
  const chosenCpus = container.annotations[CHOICE_ANNOTATION] ?? resources?.cpu?.cpus ?? '';
  return {
    pod: isNeeded
      ? { uid: grantUid(pod, container), name, qosClass, containers: [{ name: 'main', limits }] }
      : null,
    isOfPod: grantUid(pod, container) !== container.id,
    exclusiveCpus,
    memory: isGuaranteed ? limits.memory : undefined,
    chosenCpus: exclusiveCpus > 0 || chosenCpus === '' ? null : CpuSet.parse(chosenCpus),
    smt: wishes.smt,
    coreKind: wishes.coreKind,
    memoryTiers: wishes.memoryTiers,
    cdi: wishes.cdi,
    classes: wishes.classes,
    ...(exclusiveCpus > 0 && ofExclusiveCpus(wishes, exclusiveCpus)),
  };
}

// Annotations of a pod count for all of its containers, also for those in the shared pool.
function ofExclusiveCpus({ quiet, affinity }: Wishes, exclusiveCpus: number) {
  if (quiet) checkHousekeeping(quiet, exclusiveCpus);
  return { quiet, affinity };
}

function guaranteedAmounts({ requestMillis, limitMillis, memoryBytes, hugepages }: Amounts, wishes: Wishes) {
  // A kubelet that enforces no quotas only sets the shares.
  const millis = limitMillis ?? requestMillis;
  const cpu = wishes.cpu ?? (millis === undefined ? undefined : millis / 1000);
  const memory = wishes.memory ?? memoryBytes;
  return {
    ...(cpu !== undefined && { cpu }),
    ...(memory !== undefined && { memory }),
    ...hugepages,
  } as Record<string, number | string>;
}
