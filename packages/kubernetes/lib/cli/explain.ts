// numalign-node explain: which rule each container of a pod follows, and what it would get now.
import type { Command } from 'commander';
import { addFieldFlags, addOutput, type OutputFlags, sourcesOf } from './field-flags.js';

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
Reads only. Each container, or pod with --whole-pods, is planned after those before it, on the state of
this machine.
JSON: a list by container, with pod, wholePod, oneByOne (why its pod is not placed as a whole), rule,
passedOver (the rules before it, and the conditions that do not hold), exclusiveCpus, within, pool,
options, cpus and refusal.
Exit code: 1 if a container would be refused.

Example:
  $ numalign-node explain pod.yaml --config node.yaml`,
    )
    .action(async (file: string, flags: OutputFlags) => {
      const { showExplanation } = await import('./show-explanation.js');
      await showExplanation(file, flags, sourcesOf(command));
    });
}
