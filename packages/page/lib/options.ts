// The options of the page.
import { readFileSync } from 'node:fs';
import { NumalignError } from 'numalign';
import { checkOptions, errorText, invalidOption, kernelFacts } from 'numalign/tools';

/** The options of {@link machinePage}. */
export interface PageOptions {
  /**
   * What a reader gives as password, or as bearer token: 16 characters or more, without spaces.
   * @default none: only connections over loopback are answered
   */
  token?: string;
  /**
   * Shows how much memory of the grants' processes is on other NUMA nodes, every 10 seconds while a
   * page is open. The kernel walks through all their memory, for a millisecond or more a process.
   * @default `false`
   */
  memory?: boolean;
  /**
   * How many pages can follow at a time, 1 to 1000.
   * @default 16
   */
  maxStreams?: number;
  /**
   * Milliseconds between two looks at what happens on the grants' CPUs, 1000 or more. Changes of the
   * state show at once.
   * @default 2000
   */
  intervalMs?: number;
}

const OPTIONS = ['token', 'memory', 'maxStreams', 'intervalMs'] as const;
const LEAST_TOKEN = 16;
const MOST_MS = 3_600_000;

export type ParsedOptions = Required<Omit<PageOptions, 'token'>> & Pick<PageOptions, 'token'>;

/** @throws ERR_INVALID_OPTION */
export function parseOptions(options: PageOptions): ParsedOptions {
  const {
    token,
    memory = false,
    maxStreams = 16,
    intervalMs = 2000,
  } = checkOptions(options, OPTIONS, 'machinePage') as PageOptions;
  if (token !== undefined && !isToken(token)) invalidOption('token', typeof token, VALID_TOKEN);
  if (typeof memory !== 'boolean') invalidOption('memory', memory, 'true or false');
  checkWhole('maxStreams', maxStreams, 1, 1000);
  checkWhole('intervalMs', intervalMs, 1000, MOST_MS);
  return { ...(token !== undefined && { token }), memory, maxStreams, intervalMs };
}

const VALID_TOKEN = `${LEAST_TOKEN} or more printable ASCII characters without spaces`;

function isToken(token: unknown): token is string {
  return typeof token === 'string' && token.length >= LEAST_TOKEN && /^[!-~]+$/.test(token);
}

/**
 * The token in a file, without spaces around it.
 * @throws ERR_INVALID_OPTION if it is none; ERR_SYSCALL if the file cannot be read
 */
export function readPageToken(file: string): string {
  let token: string;
  try {
    token = readFileSync(file, 'utf8').trim();
  } catch (error) {
    const text = `cannot read the token of the page: ${errorText(error as Error)}`;
    throw new NumalignError('ERR_SYSCALL', text, {
      value: file,
      valid: 'a file that this process can read',
      ...kernelFacts(error as Error),
    });
  }
  if (isToken(token)) return token;
  // Not the token itself: errors are printed and logged.
  throw new NumalignError('ERR_INVALID_OPTION', `the token of the page in ${file} must be ${VALID_TOKEN}`, {
    value: file,
    valid: VALID_TOKEN,
  });
}

function checkWhole(name: string, value: unknown, least: number, most: number): void {
  if (!Number.isInteger(value) || (value as number) < least || (value as number) > most)
    invalidOption(name, value, `a whole number from ${least} to ${most}`);
}
