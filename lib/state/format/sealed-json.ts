// Sealed JSON: lines of JSON that each end with a checksum of their bytes. The first line of a file
// begins with the format and version. state.json and the owners' files use it. Pure.
import { createHash } from 'node:crypto';
import { isNumalignError, NumalignError, reworded, unlessThrown } from '../../base/errors.js';
import { native } from '../../base/native.js';
import { type Fields, isObject } from '../../base/shapes.js';

/** A kind of file, with the newest version that this numalign knows. */
export interface FileFormat {
  readonly name: string;
  readonly version: number;
  /** Older versions that are written too, for what they can express. */
  readonly older: readonly number[];
  /** The name of the file in messages. */
  readonly what: string;
}

/** A line of a file, without its newline. */
export interface SealedLine {
  /** Undefined if the checksum does not match, or the line is cut short. */
  readonly members: Fields | undefined;
  /** The checksum in the line. */
  readonly seal: string;
  /** The offset behind the line and its newline. */
  readonly end: number;
  /**
   * True for an unfinished line: the last line, with a checksum that does not match. After a power
   * cut any part of it may be on disk, even its end.
   */
  readonly isOpen: boolean;
}

/** A line to write, and its checksum. */
export interface SealedText {
  readonly line: string;
  readonly seal: string;
}

const NEWLINE = 0x0a;
const sealed = (seal: string) => `,"checksum":"crc32:${seal}"}`;
const SEAL_LENGTH = sealed('00000000').length;
const HEAD = /^\{"format":"([a-z-]+)","version":(\d+),/;
// Longer than the head of any file.
const HEAD_LENGTH = 200;

/** Guards against damage, not against forgery. */
export const checksum = (bytes: string | Uint8Array) => native.crc32(bytes).toString(16).padStart(8, '0');

/** Seals an object. `text`: the JSON of the object. */
export function sealText(text: string): SealedText {
  const body = text.slice(0, -1);
  const seal = checksum(body);
  return { line: `${body}${sealed(seal)}\n`, seal };
}

export const sealLine = (text: string): string => sealText(text).line;

/** How long the line is that {@link sealLine} makes of a text. */
export const sealedLength = (text: string): number => text.length - 1 + SEAL_LENGTH + '\n'.length;

const lengthOf = (parts: readonly string[]) =>
  parts.reduce((length, part) => length + Buffer.byteLength(part), 0);

function writeParts(bytes: Buffer, parts: readonly string[], offset: number): void {
  let at = offset;
  for (const part of parts) at += bytes.write(part, at);
}

/** The bytes of a text in parts. Joining a long text first takes several times as long. */
export function bytesOf(parts: readonly string[]): Buffer {
  const bytes = Buffer.allocUnsafe(lengthOf(parts));
  writeParts(bytes, parts, 0);
  return bytes;
}

/**
 * The sealed line of an object, as {@link sealText} makes it. `parts`: the JSON of the object.
 * `before`: returns the text in front of the line, from the length of the line. `after`: the text
 * behind it. `end`: the end of the line.
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
  bytes.write(`${sealed(seal)}\n${after}`, begin + body);
  return { bytes, end, seal };
}

/**
 * The JSON of an object with `members`, then `texts`, whose values are JSON already, then `others`.
 */
export function textOfMembers(members: object, texts: Readonly<Record<string, string>>, others = {}): string {
  let text = JSON.stringify(members).slice(0, -1);
  const add = (part: string) => (text += text === '{' ? part : `,${part}`);
  for (const member of Object.keys(texts)) add(`"${member}":${texts[member]}`);
  const after = JSON.stringify(others).slice(1, -1);
  if (after !== '') add(after);
  return `${text}}`;
}

/** Members of a line or file that belong to the seal, not to the contents. */
export const SEAL_MEMBERS = ['format', 'version', 'line', 'checksum'] as const;

/** The first members of every file. */
export const headOf = ({ name }: FileFormat, version: number) => ({ format: name, version });

/** The lines of a file. `isSealed`: false for a newer version, which may seal in another way. */
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

// Undefined if the checksum does not match.
function sealOf(line: Buffer): string | undefined {
  const body = line.length - SEAL_LENGTH;
  if (body <= 0) return undefined;
  const seal = checksum(line.subarray(0, body));
  return line.toString('latin1', body) === sealed(seal) ? seal : undefined;
}

function parse(line: Buffer): Fields | undefined {
  try {
    const members: unknown = JSON.parse(line.toString('utf8'));
    return isObject(members) ? members : undefined;
  } catch {
    return undefined;
  }
}

/** Stops reading a damaged file; see {@link reading}. @throws ERR_STATE_CORRUPT */
export function corrupt(message: string, value?: unknown, valid?: string): never {
  throw new NumalignError('ERR_STATE_CORRUPT', message, { value, ...(valid !== undefined && { valid }) });
}

/**
 * Returns what `read` returns. Adds the name of the file to errors of damage.
 * @throws ERR_STATE_CORRUPT, and what else `read` throws
 */
export function reading<T>(format: FileFormat, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw damageIn(format, error);
  }
}

/** Adds the name of the file to an error of damage. Returns other errors as they are. */
export function damageIn({ what }: FileFormat, error: unknown): unknown {
  if (!isNumalignError(error, 'ERR_STATE_CORRUPT')) return error;
  return reworded(error, `${what} is damaged: ${error.message}`);
}

/** What to do about a value that only a newer numalign knows. */
export const NEWER =
  'this numalign does not know: run the one that wrote it or a newer one (npm install numalign@latest)';

function newerVersion({ what, version }: FileFormat, found: number): NumalignError {
  const message = `${what} has format version ${found}, which ${NEWER}`;
  return new NumalignError('ERR_STATE_VERSION', message, { value: found, valid: `up to ${version}` });
}

/**
 * The version in the head of a file; undefined if the file has another format. Checks nothing else.
 */
export function versionOf({ name }: FileFormat, bytes: Buffer): number | undefined {
  const head = `{"format":"${name}","version":`;
  const text = bytes.toString('latin1', 0, HEAD_LENGTH);
  const digits = text.slice(head.length, Math.max(0, text.indexOf(',', head.length)));
  const isNumber = digits !== '' && [...digits].every((each) => each >= '0' && each <= '9');
  return text.startsWith(head) && isNumber ? Number(digits) : undefined;
}

/**
 * The version of a file, and the error for a newer one that only a newer numalign can read.
 * @throws ERR_STATE_CORRUPT if the file has another format
 */
export function checkVersion(format: FileFormat, bytes: Buffer) {
  const version = versionOf(format, bytes);
  if (version === undefined || version < 1) return corrupt(`it does not begin like ${format.what}`);
  return { version, newer: isNewer(format, bytes) ? newerVersion(format, version) : undefined };
}

/**
 * True if the file has a newer version. False if damage changed the version number of this
 * version's file.
 */
export function isNewer(format: FileFormat, bytes: Buffer): boolean {
  const version = versionOf(format, bytes);
  return version !== undefined && version > format.version && !isDamagedVersion(format, bytes);
}

// A newer format may have another checksum, or none. If the checksum matches once the number is
// this version's, the number was damaged.
function isDamagedVersion(format: FileFormat, bytes: Buffer): boolean {
  const withVersion = (text: string, version: number) =>
    text.replace(HEAD, `{"format":"$1","version":${version},`);
  const newline = bytes.indexOf(NEWLINE);
  const line = bytes.toString('utf8', 0, newline < 0 ? bytes.length : newline);
  const isSealedAs = (version: number) => sealOf(Buffer.from(withVersion(line, version))) !== undefined;
  return (
    [format.version, ...format.older].some(isSealedAs) ||
    membersOfVersion1(withVersion(bytes.toString('utf8'), 1)) !== undefined
  );
}

// In version 1 of the formats a file was one line with this checksum.
const SEAL_1 = /,"checksum":"sha256:([0-9a-f]{64})"\}\n$/;

/** The members of a file of version 1. @throws ERR_STATE_CORRUPT */
export const readVersion1 = (bytes: Buffer): Fields =>
  membersOfVersion1(bytes.toString('utf8')) ?? corrupt('the checksum does not match its bytes');

/** The members of a file of version 1; undefined if it is damaged. */
export function membersOfVersion1(file: string): Fields | undefined {
  const seal = SEAL_1.exec(file);
  if (!seal || createHash('sha256').update(file.slice(0, seal.index)).digest('hex') !== seal[1])
    return undefined;
  return unlessThrown(() => JSON.parse(file) as Fields);
}
