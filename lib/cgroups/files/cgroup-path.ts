// Paths and names of cgroups: what may be the root that we were given, and how a name becomes a
// folder below it.
import { lstatSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { display } from '../../base/check-options.js';
import { native } from '../../base/native.js';
import { cgroupRefusal } from './cgroup-error.js';

const MAX_BYTES = 255; // NAME_MAX

// What cgroup v1 has in every folder without a dot in its name; with one, everything else has.
const CONTROL_FILES = ['tasks', 'notify_on_release', 'release_agent'];

/**
 * A name as that of a cgroup: percent-encoded where it could be mistaken for a path or for one of
 * the kernel's files, which all but a few have a dot.
 * @throws ERR_CGROUP where it is empty, too long, or no text
 */
export function encodeName(name: string): string {
  const valid = `a text of 1 to ${MAX_BYTES} bytes when percent-encoded`;
  const refuse = (why: string) =>
    cgroupRefusal('bad-name', `${display(name)} cannot be the name of a cgroup: ${why}; valid is ${valid}`, {
      value: name,
      valid,
    });
  if (typeof name !== 'string' || name === '') throw refuse('it is empty or no text');
  let encoded: string;
  try {
    encoded = encodeURIComponent(name).replaceAll('.', '%2E');
  } catch {
    throw refuse('half of a surrogate pair is in it');
  }
  if (CONTROL_FILES.includes(encoded)) encoded = `%${encoded.charCodeAt(0).toString(16)}${encoded.slice(1)}`;
  if (encoded.length > MAX_BYTES) throw refuse('it is too long');
  return encoded;
}

/** The name that {@link encodeName} would make this of; undefined for what it would not make. */
export function decodeName(encoded: string): string | undefined {
  try {
    const name = decodeURIComponent(encoded);
    return encodeName(name) === encoded ? name : undefined;
  } catch {
    return undefined;
  }
}

/**
 * @throws ERR_CGROUP for anything but the plain absolute path of a cgroup below the hierarchy's
 *   own.
 */
export function checkRootPath(path: string): void {
  const valid =
    'an absolute path inside the hierarchy, such as "/numalign", without "." and ".." and not "/"';
  const isPlain = (part: string) => !['', '.', '..'].includes(part) && !/\p{Cc}/u.test(part);
  if (typeof path === 'string' && path.startsWith('/') && path.split('/').slice(1).every(isPlain)) return;
  throw cgroupRefusal('bad-path', `the cgroup root must be ${valid}, not ${display(path)}`, {
    value: path,
    valid,
  });
}

/**
 * Looks at a folder of a hierarchy and at all above it: no links, and nothing else mounted over.
 * What is not there yet is in order. REQUIRES: `folder` is `point` or plainly below it.
 * @throws ERR_CGROUP
 */
export function checkFolder(point: string, folder: string): void {
  const { dev } = statSync(point);
  const valid = 'a path of cgroups, without links and other mounts';
  let path = point;
  for (const part of folder.slice(point.length).split('/').slice(1)) {
    path = join(path, part);
    const found = lstatSync(path, { throwIfNoEntry: false });
    if (!found) return;
    if (found.isDirectory() && found.dev === dev) continue;
    const what = found.isSymbolicLink()
      ? 'a link'
      : found.isDirectory()
        ? 'another file system'
        : 'no folder';
    throw cgroupRefusal('bad-path', `${path} is ${what}; valid is ${valid}`, { path, value: folder, valid });
  }
}

const UNIT = /\.(service|scope|slice|socket|mount|swap)$/;

/** The innermost systemd unit that a folder is in or is. */
export function unitOf(point: string, folder: string): string | undefined {
  const parts = folder.slice(point.length).split('/');
  const last = parts.findLastIndex((part) => UNIT.test(part));
  return last < 0 ? undefined : point + parts.slice(0, last + 1).join('/');
}

/**
 * Whether systemd has left the inside of a unit to others (`Delegate=`). It marks the cgroup with
 * an attribute: `trusted.delegate`, which only root can see, and where the kernel has it
 * `user.delegate`; and gives it to the user that the unit runs as.
 */
export function isDelegated(unit: string): boolean {
  const found = statSync(unit, { throwIfNoEntry: false });
  if (!found) return false;
  return (
    found.uid !== 0 ||
    ['user.delegate', 'trusted.delegate'].some((name) => native.extendedAttribute(unit, name) === '1')
  );
}
