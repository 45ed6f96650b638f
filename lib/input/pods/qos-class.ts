// QosClass: how Kubernetes classes a pod by what it asks for, and why it is not Guaranteed. Pure.
import { type ParsedContainer, QOS_CLASSES, type QosClass } from './pod-resources.js';
import { fail, nanosOf } from './resource-amounts.js';

/** As Kubernetes computes it: over all containers, by cpu and memory alone, exactly. */
function qosClassOf(containers: readonly Pick<ParsedContainer, 'requests' | 'limits'>[]): QosClass {
  let [isAnything, isGuaranteed] = [false, true];
  for (const resource of ['cpu', 'memory']) {
    let [requested, limited] = [0n, 0n];
    for (const { requests, limits } of containers) {
      const limit = nanosOf(limits, resource);
      if (limit === 0n) isGuaranteed = false;
      if (limit > 0n) isAnything = true;
      // Containers whose requests are their limits change nothing.
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

/** The reason why a pod or container is not Guaranteed: no limit, or a request below it. */
function flawsIn({ requests, limits }: Pick<ParsedContainer, 'requests' | 'limits'>, what: string): string[] {
  const resources = ['cpu', 'memory'];
  const unlimited = resources.filter((resource) => nanosOf(limits, resource) === 0n);
  const lower = resources.filter((resource) => nanosOf(requests, resource) !== nanosOf(limits, resource));
  if (unlimited.length > 0) return [`${what} has no limit of ${unlimited.join(' and ')}`];
  return lower.length > 0 ? [`${what} requests less ${lower.join(' and ')} than its limit`] : [];
}

/** For a pod without amounts as a whole; with the reason why it is not Guaranteed, or null. */
export function qosOfContainers(containers: readonly ParsedContainer[]) {
  const qosClass = qosClassOf(containers);
  if (qosClass === 'Guaranteed') return { qosClass, notGuaranteed: null };
  const flaws = containers.flatMap((each) => flawsIn(each, `container ${each.container.name}`));
  return { qosClass, notGuaranteed: flaws.join(', ') };
}

/** If a pod has resources as a whole, only those count. */
export function qosOfWhole(whole: Pick<ParsedContainer, 'requests' | 'limits'>) {
  const qosClass = qosClassOf([whole]);
  const flaws = qosClass === 'Guaranteed' ? null : flawsIn(whole, 'the pod as a whole').join(', ');
  return { qosClass, notGuaranteed: flaws };
}

/** As a caller gives it. @throws ERR_INVALID_POD */
export function qosOfCaller(given: unknown) {
  if (given === undefined || given === null) return undefined;
  const qosClass = QOS_CLASSES.find((each) => each === given);
  if (qosClass === undefined) return fail('qosClass', given, `one of ${QOS_CLASSES.join(', ')}`);
  return { qosClass, notGuaranteed: qosClass === 'Guaranteed' ? null : `the pod is ${qosClass}` };
}
