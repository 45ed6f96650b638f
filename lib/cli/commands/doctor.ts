// numalign doctor: what this machine and this user can and cannot do, and what to change. Only
// looks.
import type { Command } from 'commander';
import { NumalignError } from '../../base/errors.js';
import { judge } from '../../doctor/judge.js';
import { readMachineFacts } from '../../doctor/read-facts.js';
import type { Topology } from '../../entries/topology.js';
import { discover } from '../../machine/discovery.js';
import { outputOption } from '../arguments/arguments.js';
import { cgroupRootOf, cgroupRootOption } from '../arguments/enforcement.js';
import { MACHINE_STATE_DIR, stateDirOption } from '../arguments/state-dir.js';
import { doctorText } from '../pages/doctor-text.js';
import { readState, type StateView } from '../pages/state-view.js';
import { print } from '../terminal/output.js';
import { stdoutPage } from '../terminal/terminal.js';
import { formatJson } from '../terminal/text.js';

interface DoctorFlags {
  cgroupRoot?: string;
  stateDir?: string;
  output: 'text' | 'json';
}

const HAS_PROBLEM = 1;

export function addDoctor(program: Command): void {
  program
    .command('doctor')
    .description('Say what this machine and this user can and cannot do for grants, and what to change.')
    .addOption(stateDirOption())
    .addOption(cgroupRootOption(' (default: that on record, or /numalign)'))
    .addOption(outputOption())
    .addHelpText(
      'after',
      `
Only looks, and needs no rights: nothing is made, locked or changed.

Each check has a status: ok; warning, less than the machine could give; problem, numalign does not work here, or a grant is not worth what it
promises; unknown, it cannot be seen from here. As JSON { healthy, findings: [{ group, check, status, found, advice }] }.

Exit code: 0 where there is no problem, whatever the warnings; 1 where there is one, and for an error; 2 for a wrong command line.

Examples:
  $ numalign doctor
  $ sudo numalign doctor
  $ numalign doctor --state-dir ~/numalign
  $ numalign doctor --output json | jq -r '.findings[] | select(.status == "problem") | .advice'`,
    )
    .action(diagnose);
}

async function diagnose({ cgroupRoot, stateDir = MACHINE_STATE_DIR, output }: DoctorFlags): Promise<void> {
  const topology = await discover();
  const root = cgroupRoot === undefined ? undefined : cgroupRootOf(cgroupRoot);
  const { view, refusal } = look(stateDir, topology);
  const findings = judge(
    readMachineFacts({ topology, stateDir, settings: view?.assignments.settings, refusal, cgroupRoot: root }),
  );
  const healthy = findings.every(({ status }) => status !== 'problem');
  print(output === 'json' ? formatJson({ healthy, findings }) : doctorText(findings, stdoutPage()));
  if (!healthy) process.exitCode = HAS_PROBLEM;
}

// A state that cannot be read is what was to be found out.
function look(
  stateDir: string,
  topology: Topology,
): { view?: StateView | undefined; refusal?: string | undefined } {
  try {
    const view = readState(stateDir, topology);
    return { view, refusal: view?.refusal?.message };
  } catch (error) {
    if (error instanceof NumalignError) return { refusal: error.message };
    throw error;
  }
}
