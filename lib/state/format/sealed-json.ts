// Sealed JSON: lines of JSON, each of which ends with a checksum over every byte of it before. The
// first line of a file begins with the file's format and version. How state.json and the owners'
// files are written. Pure.
import { createHash } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { NumalignError } from '../../base/errors.js';
import { type Fields, isObject } from '../../base/shapes.js';

/** A kind of file, and the newest version of it that is known here. */
export interface FileFormat {
  readonly name: string;
  readonly version: number;
  /** The version of a file that says nothing which only the newest can say. */
  readonly plain: number;
  /** For messages. */
  readonly what: string;
}

/** One line of a file, without its newline. */
export interface SealedLine {
  /** Undefined where the checksum is not that of its bytes, or the line is cut short. */
  readonly members: Fields | undefined;
  /** Its checksum, as it is written. */
  readonly seal: string;
  /** Where the line ends in the file, behind the newline. */
  readonly end: number;
  /**
   * It is the last, and its checksum is not that of its bytes: it was not finished. After a power cut
   * any part of it may be there, also its end.
   */
  readonly isOpen: boolean;
}

/** A line to be written, and its checksum. */
export interface SealedText {
  readonly line: string;
  readonly seal: string;
}

const NEWLINE = 0x0a;
const SEAL = /,"checksum":"crc32:([0-9a-f]{8})"\}$/;
const SEAL_LENGTH = ',"checksum":"crc32:00000000"}'.length;
const HEAD = /^\{"format":"([a-z-]+)","version":(\d+),/;
// The head is short, whatever the file is.
const HEAD_LENGTH = 200;

/** Damage, not forgery, is what it guards against. */
export const checksum = (bytes: string | Uint8Array) => crc32(bytes).toString(16).padStart(8, '0');

/** The line of an object, of which `text` is the JSON, and its seal. */
export function sealText(text: string): SealedText {
  const body = text.slice(0, -1);
  const seal = checksum(body);
  return { line: `${body},"checksum":"crc32:${seal}"}\n`, seal };
}

export const sealLine = (text: string): string => sealText(text).line;

const lengthOf = (parts: readonly string[]) =>
  parts.reduce((length, part) => length + Buffer.byteLength(part), 0);

function writeParts(bytes: Buffer, parts: readonly string[], offset: number): void {
  let at = offset;
  for (const part of parts) at += bytes.write(part, at);
}

/** The bytes of a text in parts. To put a long text together first takes several times as long. */
export function bytesOf(parts: readonly string[]): Buffer {
  const bytes = Buffer.allocUnsafe(lengthOf(parts));
  writeParts(bytes, parts, 0);
  return bytes;
}

/**
 * The bytes of a line as {@link sealText} makes it, and its seal, of an object whose JSON is `parts`.
 * `before`: what is in front of the line, by its length; `after`: what follows it. `end`: of the line.
 */
export function sealParts(
  parts: readonly string[],
  before: (length: number) => string,
  after: string,
): { readonly bytes: Buffer; readonly end: number; readonly seal: string } {
  const body = lengthOf(parts) - 1;
  const length = body + SEAL_LENGTH + 1;
  const head = before(length);
  const begin = Buffer.byteLength(head);
  const end = begin + length;
  const bytes = Buffer.allocUnsafe(end + Buffer.byteLength(after));
  writeParts(bytes, parts, bytes.write(head));
  const seal = checksum(bytes.subarray(begin, begin + body));
  bytes.write(`,"checksum":"crc32:${seal}"}\n${after}`, begin + body);
  return { bytes, end, seal };
}

/** The text of an object with `members`, those of which the JSON is known already, and `others`. */
export function textOfMembers(members: object, texts: Readonly<Record<string, string>>, others = {}): string {
  const before = JSON.stringify(members).slice(1, -1);
  const between = Object.entries(texts).map(([member, text]) => `"${member}":${text}`);
  const after = JSON.stringify(others).slice(1, -1);
  return `{${[before, ...between, after].filter((part) => part !== '').join(',')}}`;
}

/** Members that a line of a file or a whole one may have beside what it says. */
export const SEAL_MEMBERS = ['format', 'version', 'line', 'checksum'] as const;

/**
 * The members that the first line of every file begins with. `isPlain`: older versions know all
 * that is in the file.
 */
export const headOf = ({ name, version, plain }: FileFormat, isPlain: boolean) => ({
  format: name,
  version: isPlain ? plain : version,
});

/** The lines of a file. `isSealed`: false for a newer version, which may be sealed in another way. */
export function* linesOf(bytes: Buffer, isSealed = true): Generator<SealedLine> {
  for (let start = 0; start < bytes.length; ) {
    const newline = bytes.indexOf(NEWLINE, start);
    const end = newline < 0 ? bytes.length : newline + 1;
    const line = newline < 0 ? undefined : bytes.subarray(start, newline);
    const seal = line && sealOf(line);
    const isWhole = line !== undefined && (seal !== undefined || !isSealed);
    yield {
      members: isWhole ? parse(line) : undefined,
      seal: seal ?? '',
      end,
      isOpen: !isWhole && end === bytes.length,
    };
    start = end;
  }
}

// Undefined where it is not that of the line.
function sealOf(line: Buffer): string | undefined {
  const body = line.length - SEAL_LENGTH;
  const seal = body > 0 ? SEAL.exec(line.toString('latin1', body))?.[1] : undefined;
  return seal === checksum(line.subarray(0, Math.max(0, body))) ? seal : undefined;
}

function parse(line: Buffer): Fields | undefined {
  try {
    const members: unknown = JSON.parse(line.toString('utf8'));
    return isObject(members) ? members : undefined;
  } catch {
    return undefined;
  }
}

/** Where reading ends because of what is wrong; see {@link reading}. @throws ERR_STATE_CORRUPT */
export function corrupt(message: string, value?: unknown, valid?: string): never {
  throw new NumalignError('ERR_STATE_CORRUPT', message, { value, ...(valid !== undefined && { valid }) });
}

/**
 * What `read` answers; where it finds damage, the error says of what.
 * @throws ERR_STATE_CORRUPT, and what else `read` throws
 */
export function reading<T>(format: FileFormat, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw damageIn(format, error);
  }
}

/** An error in reading a file; where it is damage, it says which file is damaged. */
export function damageIn({ what }: FileFormat, error: unknown): unknown {
  if (!(error instanceof NumalignError) || error.code !== 'ERR_STATE_CORRUPT') return error;
  return new NumalignError('ERR_STATE_CORRUPT', `${what} is damaged: ${error.message}`, {
    ...error.details,
  });
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
  const head = HEAD.exec(bytes.subarray(0, HEAD_LENGTH).toString('latin1'));
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
function isDamagedVersion(format: FileFormat, bytes: Buffer): boolean {
  const withVersion = (text: string, version: number) =>
    text.replace(HEAD, `{"format":"$1","version":${version},`);
  const newline = bytes.indexOf(NEWLINE);
  const line = bytes.toString('utf8', 0, newline < 0 ? bytes.length : newline);
  const isSealedAs = (version: number) => sealOf(Buffer.from(withVersion(line, version))) !== undefined;
  return (
    [format.version, format.plain].some(isSealedAs) ||
    membersOfVersion1(withVersion(bytes.toString('utf8'), 1)) !== undefined
  );
}

// Version 1 of the formats was one line for the whole file, and had this checksum.
const SEAL_1 = /,"checksum":"sha256:([0-9a-f]{64})"\}\n$/;

/** The members of a file of version 1; undefined where it is damaged. */
export function membersOfVersion1(file: string): Fields | undefined {
  const seal = SEAL_1.exec(file);
  if (!seal || createHash('sha256').update(file.slice(0, seal.index)).digest('hex') !== seal[1])
    return undefined;
  try {
    return JSON.parse(file) as Fields;
  } catch {
    return undefined;
  }
}
