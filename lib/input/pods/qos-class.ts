// QosClass: the class that Kubernetes gives a pod, and why it is not Guaranteed. Pure.
import { type ParsedContainer, QOS_CLASSES, type QosClass } from './pod-resources.js';
import { fail, nanosOf } from './resource-amounts.js';

/** Computed like in Kubernetes, over all containers, from the exact amounts of cpu and memory. */
function qosClassOf(containers: readonly Pick<ParsedContainer, 'requests' | 'limits'>[]): QosClass {
  let [isAnything, isGuaranteed] = [false, true];
  for (const resource of ['cpu', 'memory']) {
    let [requested, limited] = [0n, 0n];
    for (const { requests, limits } of containers) {
      const limit = nanosOf(limits, resource);
      if (limit === 0n) isGuaranteed = false;
      if (limit > 0n) isAnything = true;
      // Equal amounts do not change the comparison.
      if (requests === limits) continue;
      requested += nanosOf(requests, resource);
      limited += limit;
    }
    if (requested + limited > 0n) isAnything = true;
    if (requested !== limited) isGuaranteed = false;
  }
  if (!isAnything) return 'BestEffort';
  return isGuaranteed ? 'Guaranteed' : 'Burstable';
}

/** Why a pod or container is not Guaranteed: it has no limit, or requests less than its limit. */
function flawsIn({ requests, limits }: Pick<ParsedContainer, 'requests' | 'limits'>, what: string): string[] {
  const resources = ['cpu', 'memory'];
  const unlimited = resources.filter((resource) => nanosOf(limits, resource) === 0n);
  const lower = resources.filter((resource) => nanosOf(requests, resource) !== nanosOf(limits, resource));
  if (unlimited.length > 0) return [`${what} has no limit of ${unlimited.join(' and ')}`];
  return lower.length > 0 ? [`${what} requests less ${lower.join(' and ')} than its limit`] : [];
}

/** The class of a pod without resources as a whole. */
export function qosOfContainers(containers: readonly ParsedContainer[]) {
  const qosClass = qosClassOf(containers);
  if (qosClass === 'Guaranteed') return { qosClass, notGuaranteed: null };
  const flaws = containers.flatMap((each) => flawsIn(each, `container ${each.container.name}`));
  return { qosClass, notGuaranteed: flaws.join(', ') };
}

/** The class of a pod with resources as a whole: only those count. */
export function qosOfWhole(whole: Pick<ParsedContainer, 'requests' | 'limits'>) {
  const qosClass = qosClassOf([whole]);
  const flaws = qosClass === 'Guaranteed' ? null : flawsIn(whole, 'the pod as a whole').join(', ');
  return { qosClass, notGuaranteed: flaws };
}

/** The class that the caller names. @throws ERR_INVALID_POD */
export function qosOfCaller(value: unknown) {
  if (value === undefined || value === null) return undefined;
  const qosClass = QOS_CLASSES.find((each) => each === value);
  if (qosClass === undefined) return fail('qosClass', value, `one of ${QOS_CLASSES.join(', ')}`);
  return { qosClass, notGuaranteed: qosClass === 'Guaranteed' ? null : `the pod is ${qosClass}` };
}
