// The socket of irqbalance: one command per connection, and an answer that ends with it. Root only.

/**
 * Sends a text to a UNIX socket, and returns everything received until the other side closes.
 * @throws an error of node:net with its `code`, such as ECONNREFUSED; ETIMEDOUT
 */
export type Ask = (path: string, text: string) => Promise<string>;

// irqbalance answers between two scans of the interrupts. A scan takes up to 0.7 s on a busy
// machine with 2 CPUs.
const TIMEOUT_MS = 1000;

export const askSocket: Ask = (path, text) =>
  new Promise((resolve, reject) => {
    let answer = '';
    const socket = process.getBuiltinModule('node:net').connect(path, () => socket.write(text));
    const timeout = setTimeout(
      () => socket.destroy(failure('ETIMEDOUT', `${path} did not answer within ${TIMEOUT_MS} ms`)),
      TIMEOUT_MS,
    );
    socket.setEncoding('utf8');
    socket.on('data', (more: string) => {
      answer += more;
    });
    socket.on('error', reject);
    socket.on('close', () => {
      clearTimeout(timeout);
      resolve(answer);
    });
  });

export const failure = (code: string, message: string): Error => Object.assign(new Error(message), { code });

export interface IrqbalanceState {
  /** Seconds between two scans of the interrupts. */
  readonly interval: number;
  /** A hexadecimal CPU mask. */
  readonly banned: string;
}

/** @throws like {@link Ask}; EPERM if irqbalance does not answer this user */
export async function irqbalanceState(ask: Ask, path: string): Promise<IrqbalanceState> {
  const answer = await ask(path, 'setup');
  const [, interval, banned] = /^SLEEP (\d+) .*BANNED ([0-9a-f,]+)/s.exec(answer) ?? [];
  if (banned === undefined) throw failure('EPERM', `${path} does not say which CPUs are banned: ${answer}`);
  return { interval: Number(interval), banned };
}

// irqbalance reads 500 bytes of a command.
const MOST_BYTES = 499;

/**
 * Replaces the banned CPUs, from the next scan on. An empty list restores those of its environment
 * and the kernel's isolated CPUs.
 * @throws like {@link Ask}; E2BIG for a list that is too long for irqbalance
 */
export async function banCpus(ask: Ask, path: string, list: string): Promise<void> {
  // An empty text crashes irqbalance 1.9.2 with a segmentation fault.
  const command = `settings cpus ${list === '' ? 'NULL' : list}`;
  if (command.length > MOST_BYTES) throw failure('E2BIG', `the list is too long for irqbalance: ${list}`);
  await ask(path, command);
}
