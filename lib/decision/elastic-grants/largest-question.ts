// The largest question: for as many CPUs as there is room for, of a request that says from how many to
// how many. Pure.
import type { ContainerRequest } from '../../input/pods/resource-amounts.js';
import { MILLI } from '../../input/values/quantity.js';
import { decideWhether } from '../decision.js';
import type { Question } from '../question.js';

/** As it is where it says no more than one number, or there is room for the least at most. */
export function largestQuestion<Asked extends Question>(question: Asked): Asked {
  const { request, present, providers } = question;
  const { pod, elastic } = request;
  // What custom providers allocate cannot be tried.
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
