// Sealed JSON: a line that begins with its format and version and ends with a checksum over every
// byte before. How state.json and the owners' files are written. Pure.
import { createHash } from '../../base/builtins.js';
import { NumalignError } from '../../base/errors.js';
import type { Fields } from '../../base/shapes.js';

/** A kind of file, and the newest version of it that is known here. */
export interface FileFormat {
  readonly name: string;
  readonly version: number;
  /** For messages. */
  readonly what: string;
}

export interface Unsealed {
  readonly members: Fields;
  /**
   * Set where a newer numalign wrote it: it may be looked at, and nothing may be written on its
   * word.
   */
  readonly newer: NumalignError | undefined;
}

// The checksum is the last member, over every byte before its comma.
const CHECKSUM_MEMBER = /,"checksum":"sha256:([0-9a-f]{64})"\}\n$/;
const HEAD = /^\{"format":"([a-z-]+)","version":(\d+),/;

function checksum(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

/**
 * A file with `members`, those of which the JSON is known already (`texts`), and `others`, in this
 * order.
 */
export function seal(
  { name, version }: FileFormat,
  members: object,
  texts: Readonly<Record<string, string>>,
  others: object,
): string {
  const before = JSON.stringify({ format: name, version, ...members }).slice(0, -1);
  const between = Object.entries(texts).map(([member, text]) => `,"${member}":${text}`);
  const after = JSON.stringify(others).slice(1, -1);
  const body = `${before}${between.join('')}${after === '' ? '' : `,${after}`}`;
  return `${body},"checksum":"sha256:${checksum(body)}"}\n`;
}

/** Where reading ends because of what is wrong; see {@link reading}. @throws ERR_STATE_CORRUPT */
export function corrupt(message: string, value?: unknown, valid?: string): never {
  throw new NumalignError('ERR_STATE_CORRUPT', message, { value, ...(valid !== undefined && { valid }) });
}

/**
 * What `read` answers; where it finds damage, the error says of what.
 * @throws ERR_STATE_CORRUPT, and what else `read` throws
 */
export function reading<T>({ what }: FileFormat, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof NumalignError) || error.code !== 'ERR_STATE_CORRUPT') throw error;
    throw new NumalignError('ERR_STATE_CORRUPT', `${what} is damaged: ${error.message}`, {
      ...error.details,
    });
  }
}

/** The error where a newer numalign wrote a file. */
export function newerVersion({ what, version }: FileFormat, found: number): NumalignError {
  return new NumalignError(
    'ERR_STATE_VERSION',
    `${what} has format version ${found}, this numalign knows up to ${version}: use the newer package`,
    { value: found, valid: `up to ${version}` },
  );
}

/**
 * The version that the file says it has; undefined where it is no such file. Nothing else of it is
 * checked.
 */
export function versionOf({ name }: FileFormat, bytes: Buffer): number | undefined {
  // The head is short, whatever the file is.
  const head = HEAD.exec(bytes.subarray(0, 200).toString('latin1'));
  return head?.[1] === name ? Number(head[2]) : undefined;
}

/**
 * Whether the file is of a newer version, and not one of this version in which the number was
 * damaged.
 */
export function isNewer(format: FileFormat, bytes: Buffer): boolean {
  const version = versionOf(format, bytes);
  return version !== undefined && version > format.version && !isDamagedVersion(format, bytes);
}

// A newer format may have another checksum, or none. But where the checksum is right once the
// number is ours, the number was damaged.
function isDamagedVersion({ version }: FileFormat, bytes: Buffer): boolean {
  const file = bytes.toString('utf8').replace(HEAD, `{"format":"$1","version":${version},`);
  const tail = CHECKSUM_MEMBER.exec(file);
  return tail !== null && checksum(file.slice(0, tail.index)) === tail[1];
}

/** @throws ERR_STATE_CORRUPT; ERR_STATE_VERSION where a newer version is not even JSON */
export function unseal(format: FileFormat, bytes: Buffer): Unsealed {
  const version = versionOf(format, bytes);
  if (version === undefined || version < 1) return corrupt(`it does not begin like ${format.what}`);
  const newer = isNewer(format, bytes) ? newerVersion(format, version) : undefined;
  const file = bytes.toString('utf8');
  if (!newer) checkSeal(file);
  try {
    return { members: JSON.parse(file) as Fields, newer };
  } catch (cause) {
    if (newer) throw newer;
    return corrupt((cause as Error).message);
  }
}

function checkSeal(file: string): void {
  const tail = CHECKSUM_MEMBER.exec(file);
  if (tail === null) corrupt('it is cut short or has no checksum');
  else if (checksum(file.slice(0, tail.index)) !== tail[1]) corrupt('the checksum does not match its bytes');
}
