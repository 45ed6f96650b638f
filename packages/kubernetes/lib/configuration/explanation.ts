// Explanation: what a configuration makes of a pod's containers: the rule that each follows, what it
// asks for, and what it would get now.
import type { ManagerView } from 'numalign';
import type { Container, PodSandbox } from '../nri/messages.js';
import type { ContainerPolicy } from '../placement/container-policy.js';
import { askedRequest, type ContainerRequest, ruleSubject } from '../placement/container-request.js';
import type { ReportedPod } from '../placement/manifest.js';
import { matching, unmet } from '../placement/rules.js';

export interface ContainerExplanation {
  readonly container: string;
  /** The name of its rule; null: none matches. */
  readonly rule: string | null;
  /** The rules before it, and the conditions that do not hold. */
  readonly passedOver: readonly { readonly rule: string; readonly unmet: readonly string[] }[];
  /** How many exclusive CPUs it asks for. */
  readonly exclusiveCpus: number;
  /** The only CPUs for it; null: all. */
  readonly within: string | null;
  /** What a shared container is bound to, of the pool; null: all of it. */
  readonly pool: string | null;
  /** The options of its rule and annotations. */
  readonly options: object;
  /** The CPUs that it would get now; null: it is shared, or refused. */
  readonly cpus: string | null;
  /** Why it is refused; null: it is not. */
  readonly refusal: { readonly code: string | null; readonly message: string } | null;
}

type Answer = Pick<ContainerExplanation, 'cpus' | 'refusal'>;

const refused = (code: string | null, message: string): Answer => ({
  cpus: null,
  refusal: { code, message },
});

/** Each container by itself, after those before it. */
export const explain = (
  pods: readonly ReportedPod[],
  policy: ContainerPolicy,
  view: Pick<ManagerView, 'planner'>,
): ContainerExplanation[] => {
  const planner = view.planner();
  return pods.flatMap(({ pod, containers }) =>
    containers.map((container) => explainOne(pod, container, policy, planner)),
  );
};

function explainOne(
  pod: PodSandbox,
  container: Container,
  policy: ContainerPolicy,
  planner: ReturnType<ManagerView['planner']>,
): ContainerExplanation {
  const { rules } = policy;
  const subject = ruleSubject(pod, container);
  const rule = matching(rules, subject);
  const before = rules.slice(0, rule ? rules.indexOf(rule) : rules.length);
  const facts = {
    container: container.name,
    rule: rule?.name ?? null,
    passedOver: before.map((each) => ({ rule: each.name, unmet: unmet(each, subject) })),
    within: rule?.cpus?.toString() ?? null,
  };
  try {
    const request = askedRequest('numalign', pod, container, rules);
    const { exclusiveCpus, placement } = request;
    const isShared = exclusiveCpus === 0;
    return {
      ...facts,
      exclusiveCpus,
      pool: isShared ? (rule?.pool ?? null) : null,
      options: { ...policy.placement, ...placement },
      ...planned(request, policy, planner),
    };
  } catch (error) {
    const { code = null, message } = error as { code?: string; message: string };
    return { ...facts, exclusiveCpus: 0, pool: null, options: {}, ...refused(code, message) };
  }
}

function planned(
  { pod, within, placement }: ContainerRequest,
  policy: ContainerPolicy,
  planner: ReturnType<ManagerView['planner']>,
): Answer {
  if (!pod) return { cpus: null, refusal: null };
  const options = { ...policy.placement, ...placement, ...(within && { within }) };
  const { admitted, code, explanation, reason, containers } = planner.plan(pod, options);
  if (!admitted) return refused(code, explanation?.text ?? String(reason));
  return { cpus: containers[0]?.cpus?.toString() ?? null, refusal: null };
}
