// numalign status: what a state folder says. Only looks.
import type { Command } from 'commander';
import { scopeOf } from '../state/ledger.js';
import { discover } from '../topology.js';
import { outputOption } from './arguments.js';
import { type KeptFiles, keptFiles } from './kept-files.js';
import { MACHINE_STATE_DIR, stateDirOption } from './state-dir.js';
import { readState, type StateView } from './state-view.js';
import { statusText } from './status-text.js';
import { stdoutColors, stdoutWidth } from './terminal.js';
import { formatJson } from './text.js';

export function addStatus(program: Command): void {
  program
    .command('status')
    .description('Show the settings, the shared pool and who holds which CPUs.')
    .addOption(stateDirOption())
    .addOption(outputOption())
    .addHelpText(
      'after',
      `
Only looks: no state folder is made or changed.

Examples:
  $ numalign status
  $ numalign status --state-dir ~/numalign
  $ numalign status --output json | jq -r '.grants[] | "\\(.cpus) \\(.name)"'
  $ numalign status --output json | jq '.grants[] | select(.flags != []) | {id, name, flags}'`,
    )
    .action(showStatus);
}

async function showStatus({
  stateDir = MACHINE_STATE_DIR,
  output,
}: {
  stateDir?: string;
  output: 'text' | 'json';
}): Promise<void> {
  const view = readState(stateDir, await discover());
  const kept = keptFiles(stateDir);
  if (output === 'json') process.stdout.write(formatJson(statusJson(stateDir, view, kept)));
  else if (view) process.stdout.write(statusText(view, kept, { width: stdoutWidth(), colors: stdoutColors() }));
  else process.stdout.write(`no state in ${stateDir}: nothing is granted\n`);
}

function statusJson(stateDir: string, view: StateView | undefined, kept: KeptFiles) {
  if (!view) return { stateDir, scope: scopeOf(stateDir), exists: false, grants: [], ...kept };
  const { scope, generation, isOfEarlierBoot, managesAll, managed, reserved, strict, assignments } = view;
  const {
    isolated,
    isolatedByKernel,
    damage,
    refusal,
    sharedPool,
    free,
    freeIsolated,
    memory,
    grants,
    lapsed,
    warnings,
  } = view;
  const settings = {
    ...{ managedCPUs: managed, managesAll, reservedSystemCPUs: reserved, strictCPUReservation: strict },
    ...{ isolatedCPUs: isolated, isolatedByKernel },
    reservedMemory: assignments.settings.reservedMemory,
  };
  return {
    ...{
      stateDir,
      scope,
      exists: true,
      generation,
      isOfEarlierBoot,
      settings,
      sharedPool,
      free,
      freeIsolated,
      memory,
      grants,
    },
    ...{ damage, refusal, lapsed, warnings, ...kept },
  };
}
