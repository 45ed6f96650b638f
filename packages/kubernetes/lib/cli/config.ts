// numalign-node config: the configuration that would be in effect.
import type { Command } from 'commander';
import { configurationJson, effectiveText, readConfiguration } from '../configuration/configuration.js';
import { FIELD_NAMES } from '../configuration/fields.js';
import { addFieldFlags, addOutput, isJson, sourcesOf } from './field-flags.js';
import { print, printJson } from './output.js';

export function addConfig(program: Command): void {
  const command: Command = program
    .command('config')
    .description('Checks a configuration, and prints each field with where it comes from.');
  addFieldFlags(command);
  addOutput(command);
  command
    .addHelpText(
      'after',
      `
Reads only the files, not the machine: CPUs that it does not have are found at the start.
JSON: by field, value and from (flag, file, kubeletConfiguration or
default).

Examples:
  $ numalign-node config --config node.yaml
  $ numalign-node config --config node.yaml --output json | jq .policy.value`,
    )
    .action(show);
}

function show(flags: Parameters<typeof isJson>[0], command: Command): void {
  const configuration = readConfiguration(sourcesOf(command));
  if (isJson(flags)) {
    printJson(configurationJson(configuration));
    return;
  }
  const width = Math.max(...FIELD_NAMES.map(({ length }) => length));
  for (const name of FIELD_NAMES) print(`${name.padEnd(width)}  ${effectiveText(configuration, name)}`);
}
