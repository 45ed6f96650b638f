// numalign doctor: shows what numalign can do for this user on this machine, and what to change. It
// only reads.
import type { Command } from 'commander';
import type { Finding } from 'numalign/diagnostics';
import { commandIn } from 'numalign/tools';
import { outputOption } from '../arguments/arguments.js';
import { type SettingFlags, settingOption, settingsOf } from '../arguments/machine-settings.js';
import { MACHINE_STATE_DIR, type StateFlags, stateDirOption } from '../arguments/state-dir.js';
import { agentOf, hasSystemd } from '../systemd/agent-service.js';
import { print } from '../terminal/output.js';
import { stdoutPage } from '../terminal/terminal.js';
import { formatJson } from '../terminal/text.js';

interface DoctorFlags extends Pick<SettingFlags, 'cgroupRoot'>, StateFlags {}

const HAS_PROBLEM = 1;

export function addDoctor(program: Command): void {
  program
    .command('doctor')
    .description(
      'Check what numalign can do on this machine as this user, and show how to fix what it cannot.',
    )
    .addOption(stateDirOption())
    .addOption(settingOption('cgroupRoot', ' (default: that on record, or /numalign)'))
    .addOption(outputOption())
    .addHelpText(
      'after',
      `
Reads only, and needs no rights.

Each check has a status: ok; warning, the machine could do better; problem, numalign does not work here or cannot keep a promise; unknown, this
user cannot see it.

JSON: healthy, findings (group, check, status, found, advice).

Exit code: 0 if there is no problem (warnings do not count); 1 if there is one, and for an error; 2 for a wrong command line.

Examples:
  $ numalign doctor
  $ sudo numalign doctor
  $ numalign doctor --state-dir ~/numalign
  $ numalign doctor --output json | jq -r '.findings[] | select(.status == "problem") | .advice'`,
    )
    .action(showDiagnosis);
}

async function showDiagnosis({ stateDir, output, ...flags }: DoctorFlags): Promise<void> {
  // One after the other: Node cannot require what is being imported.
  const { diagnose } = await import('numalign/diagnostics');
  const { doctorText } = await import('../pages/doctor-text.js');
  const diagnosis = await diagnose({
    ...(stateDir !== undefined && { stateDir }),
    ...settingsOf(flags),
  });
  const { healthy } = diagnosis;
  const findings = [...diagnosis.findings, agentFinding(stateDir)];
  print(output === 'json' ? formatJson({ healthy, findings }) : doctorText(findings, stdoutPage()));
  if (!healthy) process.exitCode = HAS_PROBLEM;
}

/** Whether CPUs come back as soon as an owner is killed. */
function agentFinding(stateDir = MACHINE_STATE_DIR): Finding {
  const head = { group: 'other managers', check: 'agent' } as const;
  const agent = agentOf(stateDir);
  if (agent !== null)
    return { ...head, status: 'ok', found: `${agent} gives CPUs back as their owners end`, advice: null };
  const isMachines = stateDir === MACHINE_STATE_DIR;
  const advice =
    isMachines && hasSystemd()
      ? '`numalign setup`, as root, installs an agent'
      : `have ${commandIn(stateDir, 'agent --no-listen')} run`;
  const found = 'the CPUs of killed owners come back when numalign is used';
  return { ...head, status: 'warning', found, advice };
}
