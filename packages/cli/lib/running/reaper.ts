// Reaper: a shell that waits until a command has ended that numalign has become, and then starts
// numalign, so that others get its CPUs back. It takes a megabyte, and sleeps in the kernel.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { agentOf } from '../systemd/agent-service.js';
import { installedLauncher } from '../terminal/installed.js';

// The subshell is no child of the command, which might wait for all of its own. It reads the end of
// the file when no process has the other end: neither the command, nor what that left running, which
// have the grant. Without shared members, cgroups and changed settings, nothing is to be given back.
const SCRIPT = `{
read -r _ <&3
exec 3<&-
for each in "$0"/members/* "$0"/cgroups/* "$CHANGED"; do test -e "$each" && exec "$@"; done
} &`;

/** The first process of a namespace is the last one, too. A unit has its own way: see ServiceUnit. */
const isFollowed = ({ pid, env }: NodeJS.Process) => pid === 1 || env.SYSTEMD_EXEC_PID === String(pid);

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
export async function startReaper(stateDir: string, isQuiet: boolean): Promise<Reaper | undefined> {
  if (isFollowed(process) || agentOf(stateDir) !== null) return undefined;
  const { node, main } = installedLauncher();
  const args = ['-c', SCRIPT, stateDir, node, main, 'release', '--dead', '--state-dir', stateDir];
  const { PATH, LD_LIBRARY_PATH } = process.env;
  const child = spawn('/bin/sh', args, {
    cwd: '/',
    // Others are for the command, such as NODE_OPTIONS.
    env: { PATH, LD_LIBRARY_PATH, CHANGED: isQuiet ? '/' : '' },
    stdio: ['ignore', 'ignore', 'ignore', 'pipe'],
    detached: true,
  });
  try {
    await once(child, 'exit');
  } catch {
    return undefined;
  }
  return reaperOf(child);
}

function reaperOf({ stdio }: ChildProcess): Reaper | undefined {
  const socket = stdio[3] as Socket & { readonly _handle?: { readonly fd: number } };
  const fd = socket._handle?.fd;
  return fd === undefined ? undefined : { fd, end: () => socket.destroy() };
}
