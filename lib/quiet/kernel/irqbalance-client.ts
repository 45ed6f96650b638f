// The socket of irqbalance: one command a connection, and an answer that ends with it. Root only.
import { connect } from 'node:net';

/**
 * Sends a text to a UNIX socket and answers all that comes back until the other side closes.
 * @throws an error of node:net with its `code`, such as ECONNREFUSED; ETIMEDOUT
 */
export type Ask = (path: string, text: string) => Promise<string>;

// It answers between two looks at the interrupts, each of which takes up to 0.7 s on a busy machine
// of 2 CPUs.
const PATIENCE_MS = 1000;

export const askSocket: Ask = (path, text) =>
  new Promise((resolve, reject) => {
    let answer = '';
    const socket = connect(path, () => socket.write(text));
    const patience = setTimeout(
      () => socket.destroy(failure('ETIMEDOUT', `${path} did not answer within ${PATIENCE_MS} ms`)),
      PATIENCE_MS,
    );
    socket.setEncoding('utf8');
    socket.on('data', (more: string) => {
      answer += more;
    });
    socket.on('error', reject);
    socket.on('close', () => {
      clearTimeout(patience);
      resolve(answer);
    });
  });

export const failure = (code: string, message: string): Error => Object.assign(new Error(message), { code });

export interface IrqbalanceState {
  /** Seconds from one look at the interrupts to the next. */
  readonly interval: number;
  /** A mask of CPUs, in hexadecimal. */
  readonly banned: string;
}

/** @throws as {@link Ask}; EPERM where it does not answer to this user */
export async function irqbalanceState(ask: Ask, path: string): Promise<IrqbalanceState> {
  const answer = await ask(path, 'setup');
  const [, interval, banned] = /^SLEEP (\d+) .*BANNED ([0-9a-f,]+)/s.exec(answer) ?? [];
  if (banned === undefined) throw failure('EPERM', `${path} does not tell which CPUs are banned: ${answer}`);
  return { interval: Number(interval), banned };
}

// It reads 500 bytes of a command.
const MOST_BYTES = 499;

/**
 * Bans these CPUs instead of those before, from its next look on. The empty list: those that its
 * environment and the kernel's isolated CPUs say.
 * @throws as {@link Ask}; E2BIG for a list that it cannot take
 */
export async function banCpus(ask: Ask, path: string, list: string): Promise<void> {
  // The empty text ends the process by a segmentation fault (1.9.2).
  const command = `settings cpus ${list === '' ? 'NULL' : list}`;
  if (command.length > MOST_BYTES) throw failure('E2BIG', `irqbalance takes no list as long as ${list}`);
  await ask(path, command);
}
