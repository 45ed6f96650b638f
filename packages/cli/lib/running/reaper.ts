// Reaper: a shell that waits until a command has ended that numalign has become, and then starts
// numalign for reap.ts alone, so that others get its CPUs back. It takes a megabyte, and sleeps in the kernel.
import { closeSync, readlinkSync } from 'node:fs';
import { startReaper as startShell } from 'numalign/tools';
import { agentOf } from '../systemd/agent-service.js';
import { installedLauncher } from '../terminal/installed.js';

// The subshell is no child of the command, which might wait for all of its own. It reads the end of
// the file when no process has the other end: neither the command, nor what that left running, which
// have the grant. Nothing is to be given back without cgroups, changed settings, and processes in the
// shared pool: of those of its own user and pid namespace it sees by their files' names whether they
// live, which /proc may hide of other users' ones. What else is on record goes with the next process
// that opens the folder.
const SCRIPT = `cd /
{
read -r _ <&3
exec 3<&-
for each in "$0"/members/* "$0"/cgroups/* "$CHANGED"; do
case $each in
"$0"/members/clear | "$0"/members/*.masks) continue ;;
"$0"/members/p*-"$NAMESPACE"-*) test -O "$each" || exec "$@"; each=\${each##*/p} each=/proc/\${each%%-*} ;;
esac
test -e "$each" && exec "$@"
done
} &`;

/** The first process of a namespace is the last one, too. A unit has its own way: see ServiceUnit. */
const isFollowed = ({ pid, env }: NodeJS.Process) => pid === 1 || env.SYSTEMD_EXEC_PID === String(pid);

/** The number of the pid namespace that this process and /proc are in; empty if that is not known. */
function namespaceOfProc(): string {
  try {
    if (readlinkSync('/proc/self') !== String(process.pid)) return '';
    return /\d+/.exec(readlinkSync('/proc/self/ns/pid'))?.[0] ?? '';
  } catch {
    return '';
  }
}

/** What the command inherits so that the reaper hears of its end. */
export interface Reaper {
  readonly fd: number;
  /** Ends the reaper's wait. */
  end(): void;
}

/**
 * Undefined if others hear of the command's end, or without a shell.
 * @param isQuiet whether settings of the machine are changed for the grant
 */
export function startReaper(stateDir: string, isQuiet: boolean): Reaper | undefined {
  if (isFollowed(process) || agentOf(stateDir) !== null) return undefined;
  const { node, main } = installedLauncher();
  const args = [stateDir, node, main, '--reap', stateDir];
  const { PATH = '', LD_LIBRARY_PATH = '' } = process.env;
  const variables = { PATH, LD_LIBRARY_PATH, CHANGED: isQuiet ? '/' : '', NAMESPACE: namespaceOfProc() };
  // Others are for the command, such as NODE_OPTIONS.
  const environment = Object.entries(variables).map((entry) => entry.join('='));
  try {
    const fd = startShell(SCRIPT, args, environment);
    return { fd, end: () => closeSync(fd) };
  } catch {
    return undefined;
  }
}
