// The largest question: asks for as many CPUs of a range as there is room for. Pure.
import type { ContainerRequest } from '../input/pods/resource-amounts.js';
import { MILLI } from '../input/values/quantity.js';
import { decideWhether } from './decision.js';
import type { Question } from './question.js';

/**
 * The question with the largest number of CPUs that would be admitted. Unchanged if the request
 * gives no range, or nothing above the minimum would be admitted.
 */
export function largestQuestion<Q extends Question>(question: Q): Q {
  const { request, present, providers } = question;
  const { pod, elastic } = request;
  // Custom providers cannot allocate for a trial.
  if (!elastic || providers.length > 0) return question;
  const [container] = pod.containers as [ContainerRequest];
  for (let cpu = Math.min(elastic.max, present.online.size); cpu > elastic.min; cpu--) {
    const requests = { ...container.requests, cpu: cpu * MILLI };
    const larger = {
      ...question,
      request: { ...request, pod: { ...pod, containers: [{ ...container, requests }] } },
    };
    if (decideWhether(larger)) return larger;
  }
  return question;
}
