// ShowExplanation: what `numalign-node explain` prints.
import { readFileSync } from 'node:fs';
import { CpuSet, openManager } from 'numalign';
import type { PodManifest } from 'numalign/kubelet';
import { contentsOf, cpusNamed } from 'numalign/tools';
import { NodeError } from '../base/errors.js';
import { yaml } from '../base/late-packages.js';
import { readConfiguration, type Sources } from '../configuration/configuration.js';
import { type ContainerExplanation, type ExplainedPod, explain } from '../configuration/explanation.js';
import { reportedPod } from '../placement/manifest.js';
import { parseRules } from '../placement/rules.js';
import { isJson, type OutputFlags } from './field-flags.js';
import { print, printJson } from './output.js';

const REFUSED = 1;

function textOf(file: string): string {
  try {
    return readFileSync(file === '-' ? 0 : file, 'utf8');
  } catch (cause) {
    const text = `${file} cannot be read: ${(cause as Error).message}`;
    throw new NodeError('ERR_INVALID_OPTION', text, { value: file, valid: 'a manifest', cause });
  }
}

/** The first pod of each workload. @throws ERR_INVALID_POD */
function podsIn(file: string): object[] {
  const documents = yaml().parseAllDocuments(textOf(file));
  const pods = documents.flatMap((document) => {
    const [error] = document.errors;
    if (error) throw new NodeError('ERR_INVALID_POD', `${file}: ${error.message}`, { value: file });
    const content: unknown = document.toJS();
    return content === null ? [] : contentsOf(content).workloads.flatMap((each) => each.pods().slice(0, 1));
  });
  if (pods.length > 0) return pods;
  throw new NodeError('ERR_INVALID_POD', `${file} has no pods`, {
    value: file,
    valid: 'a Pod or a workload',
  });
}

/** Prints it, and sets the exit code. @throws ERR_INVALID_POD, ERR_INVALID_CONFIGURATION */
export async function showExplanation(file: string, flags: OutputFlags, sources: Sources): Promise<void> {
  const { values, manager } = readConfiguration(sources);
  const { stateDir, rules, wholePods, dra } = values;
  const view = await openManager({ ...manager.placement, readOnly: true, stateDir });
  try {
    const policy = { placement: {}, rules: parseRules(rules, 'rules') };
    const answers = explain(
      podsIn(file).map((pod, i) => explainedPod(pod, `pod${i}`, { wholePods, hasClaims: dra !== false })),
      policy,
      view,
    );
    if (isJson(flags)) printJson(answers);
    else for (const line of pagesOf(answers)) print(line);
    if (answers.some(({ refusal }) => refusal !== null)) process.exitCode = REFUSED;
  } finally {
    view.close();
  }
}

/** A manifest, as the runtime and the API server have it. */
function explainedPod(
  manifest: object,
  uid: string,
  { wholePods, hasClaims }: { wholePods: boolean; hasClaims: boolean },
): ExplainedPod {
  const { metadata } = manifest as { metadata?: object };
  const whole = { manifest: { ...manifest, metadata: { ...metadata, uid } } as PodManifest, hasClaims };
  return { ...reportedPod(manifest, uid), ...(wholePods && { whole }) };
}

/** How a pod is placed is said before its first container; if as a whole, so is why it is refused. */
function* pagesOf(answers: readonly ContainerExplanation[]): Generator<string> {
  for (const [i, answer] of answers.entries()) {
    const { pod, wholePod, oneByOne, refusal } = answer;
    if (answers[i - 1]?.pod !== pod) {
      if (wholePod) {
        yield `pod ${pod}: placed as a whole`;
        yield* refusalLines(answers.find((each) => each.pod === pod && each.refusal)?.refusal ?? null);
      } else if (oneByOne !== null) yield `pod ${pod}: containers are placed one by one: ${oneByOne}`;
    }
    yield* linesOf(answer);
    if (!wholePod) yield* refusalLines(refusal);
  }
}

const named = (list: string) => cpusNamed(CpuSet.parse(list));

function* linesOf(answer: ContainerExplanation): Generator<string> {
  const { container, rule, passedOver, exclusiveCpus, within, pool, options, cpus } = answer;
  yield `${container}: ${rule === null ? 'no rule' : `rule ${rule}`}`;
  for (const { rule: other, unmet } of passedOver) yield `  not rule ${other}: ${unmet.join(', ')}`;
  const where = within === null ? '' : ` of ${named(within)}`;
  if (exclusiveCpus > 0) yield `  asks for exclusive CPUs: ${exclusiveCpus}${where}`;
  else yield `  shared${pool === null ? '' : `, in the pool of one ${pool}`}${where}`;
  const texts = Object.entries(options).map(([name, value]) => `${name}: ${JSON.stringify(value)}`);
  if (texts.length > 0) yield `  with ${texts.join(', ')}`;
  if (cpus !== null) yield `  would get ${named(cpus)}`;
}

function* refusalLines(refusal: ContainerExplanation['refusal']): Generator<string> {
  if (!refusal) return;
  const [first, ...more] = refusal.message.split('\n');
  yield `  would be refused: ${first}${refusal.code ? ` [${refusal.code}]` : ''}`;
  for (const line of more) yield `    ${line}`;
}
