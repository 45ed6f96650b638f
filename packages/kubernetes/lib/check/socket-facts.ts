// SocketFacts: what a client finds at the path of a Unix socket.
import { accessSync, constants, readFileSync, realpathSync, statSync } from 'node:fs';
import { connect } from 'node:net';
import { basename } from 'node:path';
import type { SocketFacts } from './node-facts.js';

/** Whether a server listens on a socket. Connects only if the kernel's list does not show it. */
export async function socketFacts(path: string): Promise<SocketFacts> {
  try {
    if (!statSync(path).isSocket()) return { path, state: 'no-socket' };
    accessSync(path, constants.W_OK);
  } catch (error) {
    return { path, state: isDenial(error) ? 'forbidden' : 'absent' };
  }
  return { path, state: isListed(path) ? 'listens' : await answerOf(path) };
}

const isDenial = (error: unknown) =>
  ['EACCES', 'EPERM'].includes((error as NodeJS.ErrnoException).code ?? '');

// The flag of a listening socket in /proc/net/unix, see proc(5).
const LISTENING = 1 << 16;

// Looks for the socket in this network namespace by the path that it was bound to. A runtime would
// report a plugin that connects and says nothing.
function isListed(path: string): boolean {
  const real = realpathSync(path);
  return textOf('/proc/net/unix')
    .split('\n')
    .map((line) => /^\S+: \S+ \S+ (\S+) \S+ \S+ +\S+ (.*)$/.exec(line))
    .some((found) => {
      const [, flags, bound] = found ?? [];
      if (bound === undefined || basename(bound) !== basename(path)) return false;
      return (Number.parseInt(flags!, 16) & LISTENING) !== 0 && realPathOf(bound) === real;
    });
}

function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

function realPathOf(path: string): string | undefined {
  try {
    return realpathSync(path);
  } catch {
    return undefined;
  }
}

function answerOf(path: string): Promise<SocketFacts['state']> {
  return new Promise((resolve) => {
    const socket = connect(path);
    socket.on('connect', () => {
      socket.destroy();
      resolve('listens');
    });
    socket.on('error', (error) => resolve(isDenial(error) ? 'forbidden' : 'refused'));
  });
}
