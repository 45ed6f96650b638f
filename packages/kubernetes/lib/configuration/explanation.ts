// Explanation: what a configuration makes of a pod's containers: the rule that each follows, what it
// asks for, and what it would get now, with its whole pod or by itself.
import type { ManagerView } from 'numalign';
import type { PodManifest } from 'numalign/kubelet';
import type { Container, PodSandbox } from '../nri/messages.js';
import type { ContainerPolicy } from '../placement/container-policy.js';
import { askedRequest, type ContainerRequest, ruleSubject } from '../placement/container-request.js';
import type { ReportedPod } from '../placement/manifest.js';
import { matching, unmet } from '../placement/rules.js';
import { usesClaims, wholePodOf } from '../placement/whole-pod.js';

/** `whole`: undefined without whole pods. */
export type ExplainedPod = ReportedPod & { readonly whole?: WholePodQuestion };

interface WholePodQuestion {
  readonly manifest: PodManifest;
  /** Whether claims may give CPUs to containers. */
  readonly hasClaims: boolean;
}

export interface ContainerExplanation {
  /** Namespace and name of its pod. */
  readonly pod: string;
  readonly container: string;
  /** Whether it is placed with all containers of its pod. */
  readonly wholePod: boolean;
  /** Why it is placed by itself, though whole pods are wanted; null: it is not, or they are not. */
  readonly oneByOne: string | null;
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
type Planner = ReturnType<ManagerView['planner']>;
type How = Pick<ContainerExplanation, 'wholePod' | 'oneByOne'>;

const PREFIX = 'numalign';

const SHARED: Answer = { cpus: null, refusal: null };

const refused = (code: string | null, message: string): Answer => ({
  cpus: null,
  refusal: { code, message },
});

const refusedBy = (error: unknown): Answer => {
  const { code = null, message } = error as { code?: string; message: string };
  return refused(code, message);
};

/** Each pod, or container by itself, after those before it. */
export const explain = (
  pods: readonly ExplainedPod[],
  policy: ContainerPolicy,
  view: Pick<ManagerView, 'planner'>,
): ContainerExplanation[] => {
  const planner = view.planner();
  return pods.flatMap((each) => explainPod(each, policy, planner));
};

function explainPod(
  { pod, containers, whole: question }: ExplainedPod,
  policy: ContainerPolicy,
  planner: Planner,
): ContainerExplanation[] {
  const [how, answerOf] = answersFor(pod, question, policy, planner);
  return containers.map((container) => explainOne(pod, container, { how, policy, answerOf }));
}

type AnswerOf = (request: ContainerRequest, name: string) => Answer;

/** A wrong annotation of any container refuses the first one, and so the pod. */
function answersFor(
  pod: PodSandbox,
  question: WholePodQuestion | undefined,
  policy: ContainerPolicy,
  planner: Planner,
): [How, AnswerOf] {
  const single = (oneByOne: string | null): [How, AnswerOf] => [
    { wholePod: false, oneByOne },
    (request) => planned(request, policy, planner)(),
  ];
  if (!question) return single(null);
  if (question.hasClaims && usesClaims(question.manifest)) return single('the pod has claims');
  const how = { wholePod: true, oneByOne: null };
  const refusedAs = (answer: Answer): [How, AnswerOf] => [how, ({ pod: own }) => (own ? answer : SHARED)];
  let whole: ReturnType<typeof wholePodOf>;
  try {
    whole = wholePodOf(PREFIX, pod, question.manifest, policy.rules);
  } catch (error) {
    const answer = refusedBy(error);
    const { code, message } = answer.refusal!;
    return code === 'ERR_INVALID_ANNOTATION' ? refusedAs(answer) : single(message);
  }
  if (!whole) return single('the pod is not Guaranteed');
  try {
    const answer = planned({ ...whole.request, pod: whole.pod }, policy, planner);
    return [how, ({ pod: own }, name) => (own ? answer(name) : SHARED)];
  } catch (error) {
    return refusedAs(refusedBy(error));
  }
}

function explainOne(
  pod: PodSandbox,
  container: Container,
  { how, policy, answerOf }: { how: How; policy: ContainerPolicy; answerOf: AnswerOf },
): ContainerExplanation {
  const { rules } = policy;
  const subject = ruleSubject(pod, container);
  const rule = matching(rules, subject);
  const before = rules.slice(0, rule ? rules.indexOf(rule) : rules.length);
  const facts = {
    pod: `${pod.namespace}/${pod.name}`,
    container: container.name,
    ...how,
    rule: rule?.name ?? null,
    passedOver: before.map((each) => ({ rule: each.name, unmet: unmet(each, subject) })),
    within: rule?.cpus?.toString() ?? null,
  };
  try {
    const request = askedRequest(PREFIX, pod, container, rules);
    const { exclusiveCpus, placement } = request;
    const isShared = exclusiveCpus === 0;
    return {
      ...facts,
      exclusiveCpus,
      pool: isShared ? (rule?.pool ?? null) : null,
      options: { ...policy.placement, ...placement },
      ...answerOf(request, container.name),
    };
  } catch (error) {
    return { ...facts, exclusiveCpus: 0, pool: null, options: {}, ...refusedBy(error) };
  }
}

type Asked = Pick<ContainerRequest, 'pod' | 'within' | 'placement'>;

/** What a container of the pod would get; without a name, its only one. */
function planned(
  { pod, within, placement }: Asked,
  policy: ContainerPolicy,
  planner: Planner,
): (name?: string) => Answer {
  if (!pod) return () => SHARED;
  const options = { ...policy.placement, ...placement, ...(within && { within }) };
  const { admitted, code, explanation, reason, containers } = planner.plan(pod, options);
  if (!admitted) return () => refused(code, explanation?.text ?? String(reason));
  return (name) => {
    const own = name === undefined ? containers[0] : containers.find((each) => each.name === name);
    return { cpus: own?.cpus?.toString() ?? null, refusal: null };
  };
}
