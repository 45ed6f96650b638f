// numalign release: ends a persistent grant, or one or all grants of dead owners.
import { type Command, Option } from 'commander';
import { type CpuSet, openManager } from 'numalign';
import { cpusNamed, isNumalignError } from 'numalign/tools';
import { outputOption } from '../arguments/arguments.js';
import { findGrant } from '../arguments/find-grant.js';
import { MACHINE_STATE_DIR, type StateFlags, stateDirOption } from '../arguments/state-dir.js';
import { statusIn } from '../arguments/view.js';
import { machineOf } from '../pages/machine.js';
import { print } from '../terminal/output.js';
import { formatJson, printable } from '../terminal/text.js';

interface ReleaseFlags extends StateFlags {
  dead?: boolean;
}

interface ReleasedGrant {
  readonly uid: string;
  readonly name: string;
  readonly cpus: CpuSet;
  readonly alive: boolean;
}

export function addRelease(program: Command): void {
  const command: Command = program.command('release');
  command
    .description(
      'Give back what a grant or pod holds. To release a grant whose process still runs, end the process.',
    )
    .argument('[id]', 'the uid, its first characters (at least 4), or the name')
    .usage('[options] <id>')
    .addOption(new Option('--dead', 'release all grants of dead owners, as the next acquire does'))
    .addOption(stateDirOption())
    .addOption(outputOption())
    .addHelpText(
      'after',
      `
JSON: stateDir, grant, name, cpus, alive.

Exit code: 0 if it is released; 1 if there is no such grant, if its process still runs, and for an error; 2 for a wrong command line.

Examples:
  $ numalign release 3f2a9c1e-0d1b-4c55-9a8e-6f1f0a7d2b34
  $ numalign release 3f2a
  $ numalign release gateway
  $ numalign release gateway --output json | jq -r .cpus
  $ numalign release --dead`,
    )
    .action((id: string | undefined, { dead = false, ...flags }: ReleaseFlags) => {
      if (dead && id !== undefined) command.error(`error: '${id}' cannot be used with option '--dead'`);
      if (dead) return releaseDead(flags);
      if (id === undefined) command.error("error: missing required argument 'id'");
      return releaseGrant(id, flags);
    });
}

// A view comes first: with nothing to do, no folder is made and no process is woken.
async function releaseDead({ stateDir = MACHINE_STATE_DIR, output }: ReleaseFlags): Promise<void> {
  const topology = await machineOf({});
  const dead = (await statusIn({ stateDir, topology })).grants.filter(({ alive }) => !alive);
  // Opening a manager takes the grants back.
  if (dead.length > 0)
    (await openManager({ stateDir, topology, besideKubelet: true, sharedMember: false })).close();
  const grants = dead.map(({ uid, name, cpus }) => ({ grant: uid, name, cpus, alive: false }));
  print(output === 'json' ? formatJson({ stateDir, grants }) : dead.map(releasedLine).join(''));
}

async function releaseGrant(
  text: string,
  { stateDir = MACHINE_STATE_DIR, output }: ReleaseFlags,
): Promise<void> {
  // A view finds the grant first: opening a manager takes back grants of dead owners, and makes the
  // folder.
  const topology = await machineOf({});
  const grant = findGrant((await statusIn({ stateDir, topology })).grants, text, stateDir);
  // This command grants nothing.
  const manager = await openManager({ stateDir, topology, besideKubelet: true, sharedMember: false });
  try {
    await manager.release(grant.uid);
  } catch (error) {
    const isTakenBack = !grant.alive && isNumalignError(error, 'ERR_UNKNOWN_GRANT');
    if (!isTakenBack) throw error;
  } finally {
    manager.close();
  }
  const { uid, name, cpus, alive } = grant;
  print(output === 'json' ? formatJson({ stateDir, grant: uid, name, cpus, alive }) : releasedLine(grant));
}

function releasedLine({ uid, name, cpus, alive }: ReleasedGrant): string {
  const nameText = name === uid ? '' : ` (${printable(name)})`;
  const cpusText = cpus.isEmpty ? 'it had no exclusive CPUs' : cpusNamed(cpus);
  return `released grant ${printable(uid)}${nameText}: ${cpusText}${alive ? '' : '; its owner was dead'}\n`;
}
