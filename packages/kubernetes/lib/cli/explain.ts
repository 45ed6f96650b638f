// numalign-node explain: which rule each container of a pod follows, and what it would get now.
import { readFileSync } from 'node:fs';
import type { Command } from 'commander';
import { CpuSet, openManager } from 'numalign';
import { contentsOf, cpusNamed } from 'numalign/tools';
import { parseAllDocuments } from 'yaml';
import { NodeError } from '../base/errors.js';
import { readConfiguration } from '../configuration/configuration.js';
import { type ContainerExplanation, explain } from '../configuration/explanation.js';
import { reportedPod } from '../placement/manifest.js';
import { parseRules } from '../placement/rules.js';
import { addFieldFlags, addOutput, isJson, sourcesOf } from './field-flags.js';
import { print, printJson } from './output.js';

const REFUSED = 1;

export function addExplain(program: Command): void {
  const command: Command = program
    .command('explain')
    .description('Shows which rule each container of a pod follows, what it asks for, and what it would get.')
    .argument('<manifest>', 'a pod, or what makes pods, as YAML or JSON; - for standard input');
  addFieldFlags(command);
  addOutput(command);
  command
    .addHelpText(
      'after',
      `
Reads only. Each container is planned after those before it, on the state of this machine.
JSON: a list by container, with rule, passedOver (the rules before it, and the conditions that do not
hold), exclusiveCpus, within, pool, options, cpus and refusal.
Exit code: 1 if a container would be refused.

Example:
  $ numalign-node explain pod.yaml --config node.yaml`,
    )
    .action(show);
}

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
  const documents = parseAllDocuments(textOf(file));
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

async function show(file: string, flags: Parameters<typeof isJson>[0], command: Command): Promise<void> {
  const { values, manager } = readConfiguration(sourcesOf(command));
  const { stateDir, rules } = values;
  const view = await openManager({ ...manager.placement, readOnly: true, stateDir });
  try {
    const policy = { placement: {}, rules: parseRules(rules, 'rules') };
    const answers = explain(
      podsIn(file).map((pod, i) => reportedPod(pod, `pod${i}`)),
      policy,
      view,
    );
    if (isJson(flags)) printJson(answers);
    else for (const answer of answers) for (const line of linesOf(answer)) print(line);
    if (answers.some(({ refusal }) => refusal !== null)) process.exitCode = REFUSED;
  } finally {
    view.close();
  }
}

const named = (list: string) => cpusNamed(CpuSet.parse(list));

function* linesOf(answer: ContainerExplanation): Generator<string> {
  const { container, rule, passedOver, exclusiveCpus, within, pool, options, cpus, refusal } = answer;
  yield `${container}: ${rule === null ? 'no rule' : `rule ${rule}`}`;
  for (const { rule: other, unmet } of passedOver) yield `  not rule ${other}: ${unmet.join(', ')}`;
  const where = within === null ? '' : ` of ${named(within)}`;
  if (exclusiveCpus > 0) yield `  asks for exclusive CPUs: ${exclusiveCpus}${where}`;
  else yield `  shared${pool === null ? '' : `, in the pool of one ${pool}`}${where}`;
  const texts = Object.entries(options).map(([name, value]) => `${name}: ${JSON.stringify(value)}`);
  if (texts.length > 0) yield `  with ${texts.join(', ')}`;
  if (cpus !== null) yield `  would get ${named(cpus)}`;
  if (!refusal) return;
  const [first, ...more] = refusal.message.split('\n');
  yield `  would be refused: ${first}${refusal.code ? ` [${refusal.code}]` : ''}`;
  for (const line of more) yield `    ${line}`;
}
