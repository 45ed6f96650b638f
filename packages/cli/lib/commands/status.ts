// numalign status: shows the state in a folder. It only reads.
import type { Command } from 'commander';
import type { KeptFiles, StateStatus } from 'numalign/diagnostics';
import { BY_MASKS, cgroupAdvice, cgroupRootRefusal } from 'numalign/tools';
import { intervalOption, outputOption } from '../arguments/arguments.js';
import { MACHINE_STATE_DIR, type StateFlags, stateDirOption } from '../arguments/state-dir.js';
import { unlessClosed, withView } from '../arguments/view.js';
import { statusText } from '../pages/status/status-text.js';
import { watchStatus } from '../pages/status/status-watch.js';
import { agentOf } from '../systemd/agent-service.js';
import { print } from '../terminal/output.js';
import { stdoutPage } from '../terminal/terminal.js';
import { formatJson, printable } from '../terminal/text.js';

export function addStatus(program: Command): void {
  const command = program.command('status');
  command
    .description('Show the settings, the shared pool, and which grant holds which CPUs.')
    .addOption(stateDirOption())
    .addOption(outputOption())
    .option('--watch', 'show what happens on the granted CPUs until interrupted; as JSON one document a line')
    .addOption(intervalOption(', with --watch'))
    .addHelpText(
      'after',
      `
Reads only, and works without the group of the folder.

--watch shows for each grant how long its threads ran (as a share of one CPU) and waited for a CPU, how often the kernel preempted them,
which foreign tasks ran on its CPUs, and interrupts and throttling. "-" means that the value cannot be read here, "0+" that none was seen, but some
processes are hidden.

JSON: stateDir, scope, exists, generation, isOfEarlierBoot, settings, sharedPool, free, freeIsolated, memory, kubelet, grants (with survivors:
processes that keep it after its owner, and cgroups), sharedMembers (with the grant and container that a process is attached to), waiting (the next
first), damage, refusal, lapsed, warnings, archives, quarantine, agent (the service that gives CPUs back as their owners end; null without); without a
state stateDir, scope, exists, grants, archives, quarantine, agent. If the
machine's folder is closed to you: stateDir, scope, exists, closed (why), grants (null). With --watch: time, stateDir, generation, grants (with
audit).

Exit code: 0, also if there is no state, if the machine's is closed to you, and after an interrupted --watch; 1 for an error; 2 for a wrong command line.

Examples:
  $ numalign status
  $ numalign status --state-dir ~/numalign
  $ numalign status --output json | jq -r '.grants[] | "\\(.cpus) \\(.name)"'
  $ numalign status --watch --interval 5
  $ numalign status --watch --output json | jq '.grants[] | {name, delay: .audit.totals.runDelayNs}'
  $ numalign status --output json | jq '.grants[] | select(.flags != []) | {uid, name, flags}'`,
    )
    .action((flags: StatusFlags) => {
      const { watch = false, interval, stateDir, output } = flags;
      if (watch)
        return watchStatus({ stateDir: stateDir ?? MACHINE_STATE_DIR, seconds: interval ?? 1, output });
      if (interval !== undefined) command.error('error: --interval needs --watch');
      return showStatus(stateDir, output);
    });
}

interface StatusFlags extends StateFlags {
  watch?: boolean;
  interval?: number;
}

async function showStatus(folder: string | undefined, output: 'text' | 'json'): Promise<void> {
  const stateDir = folder ?? MACHINE_STATE_DIR;
  const { result, closed } = await unlessClosed(folder, () =>
    withView({ stateDir }, (view) => ({ status: view.status(), files: view.keptFiles() })),
  );
  if (closed) {
    const json = { stateDir, scope: 'machine', exists: true, closed: closed.message, grants: null };
    const text = `the grants cannot be read: ${printable(closed.message)}\n`;
    print(output === 'json' ? formatJson(json) : text);
    return;
  }
  const { status, files } = result;
  const agent = agentOf(status.stateDir);
  if (output === 'json') print(formatJson({ ...statusJson(status, files), agent }));
  else if (status.exists)
    print(statusText(status, files, { agent, whyMembers: whyMembers(status) }, stdoutPage()));
  else print(`no state in ${stateDir}: nothing is granted\n`);
}

function whyMembers({ stateDir, settings, grants }: StateStatus): string | undefined {
  const { cgroupRoot, managedCPUs } = settings;
  const refusal = cgroupRoot === null ? undefined : cgroupRootRefusal(stateDir, cgroupRoot, managedCPUs);
  if (refusal !== undefined) return refusal;
  if (cgroupRoot !== null || grants.every(({ enforcement }) => enforcement !== BY_MASKS)) return undefined;
  return `only masks keep others off; as root, ${cgroupAdvice(stateDir)} allows more`;
}

function statusJson(status: StateStatus, files: KeptFiles) {
  const { stateDir, scope, exists, refusal } = status;
  if (!exists) return { stateDir, scope, exists, grants: [], ...files };
  return { ...status, refusal: refusal?.message ?? null, ...files };
}
