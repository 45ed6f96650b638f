// numalign attach: moves a running process onto the CPUs of a grant that belongs to no other
// process.
import type { Command } from 'commander';
import { openManager } from 'numalign';
import type { MemoryBinding } from 'numalign/diagnostics';
import { cpusNamed, nodesNamed } from 'numalign/tools';
import { outputOption, processId } from '../arguments/arguments.js';
import { findGrant } from '../arguments/find-grant.js';
import { MACHINE_STATE_DIR, type StateFlags, stateDirOption } from '../arguments/state-dir.js';
import { statusIn } from '../arguments/view.js';
import { machineOf } from '../pages/machine.js';
import { print } from '../terminal/output.js';
import { formatJson, printable } from '../terminal/text.js';

interface AttachFlags extends StateFlags {
  container?: string;
  migrate?: boolean;
}

export function addAttach(program: Command): void {
  program
    .command('attach')
    .description('Move a running process, with its threads and child processes, onto the CPUs of a grant.')
    .argument('<id>', 'the uid, its first characters (at least 4), or the name')
    .argument('<pid>', 'the process', processId)
    .option('--container <name>', 'onto the CPUs of this container (default: of all of them)')
    .option('--migrate', 'also move memory that it has on other nodes than are booked')
    .addOption(stateDirOption())
    .addOption(outputOption())
    .addHelpText(
      'after',
      `
The process moves into the cgroup of the grant. Without a cgroup, numalign sets the masks of its threads, and can miss a thread that is just
starting. For a container without exclusive CPUs the process becomes a shared member. You cannot attach to the grant of a running process: that
process starts others on its CPUs itself.

JSON: stateDir, grant, container, pid, cpus, guaranteed, memory (null: none is booked).

Exit code: 0 if the process moved; 1 if it did not, and for an error; 2 for a wrong command line.

Examples:
  $ numalign admit -f pod.yaml && numalign attach gateway 4711 --container main
  $ numalign attach 3f2a 4711 --output json | jq -r .cpus`,
    )
    .action(attach);
}

async function attach(text: string, pid: number, flags: AttachFlags): Promise<void> {
  const { container, migrate = false, stateDir = MACHINE_STATE_DIR, output } = flags;
  const topology = await machineOf({});
  // A view finds the grant first, since opening a manager would make the folder.
  const { uid, name } = findGrant((await statusIn({ stateDir, topology })).grants, text, stateDir);
  // This command grants nothing, and its process needs no membership.
  const manager = await openManager({ stateDir, topology, besideKubelet: true, sharedMember: false });
  try {
    const target = container === undefined ? manager.grant(uid) : manager.pod(uid).container(container);
    const { cpus, guaranteed, memory } = await target.attach(pid, { migrate });
    if (output === 'json') {
      print(
        formatJson({ stateDir, grant: uid, container: container ?? null, pid, cpus, guaranteed, memory }),
      );
      return;
    }
    const place =
      (target.cpus?.isEmpty ?? true)
        ? `runs in the shared pool: ${cpusNamed(cpus)}`
        : `is on ${cpusNamed(cpus)} of ${printable(name)}${guaranteed ? '' : ', by the masks of its threads'}`;
    print(`process ${pid} ${place}${memory ? memoryPlace(memory) : ''}\n`);
  } finally {
    manager.close();
  }
}

function memoryPlace({ wanted, applied, reason }: MemoryBinding): string {
  const nodes = nodesNamed(wanted);
  return applied ? `, with memory of ${nodes}` : `; its memory is not bound to ${nodes}: ${reason}`;
}
