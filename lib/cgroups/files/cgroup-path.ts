// Paths and names of cgroups: checks the root path from the settings, and encodes names as folders
// below it.
import { lstatSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { display } from '../../base/check-options.js';
import { NumalignError } from '../../base/errors.js';
import { native } from '../../base/native.js';
import { cgroupRefusal } from './cgroup-error.js';

const MAX_BYTES = 255; // NAME_MAX

// The control files of cgroup v1 without a dot in their names. All other control files have one.
const CONTROL_FILES = ['tasks', 'notify_on_release', 'release_agent'];

/**
 * Encodes a name as the name of a cgroup. Percent-encodes what could be mistaken for a path or a
 * control file, nearly all of which have a dot.
 * @throws ERR_CGROUP if it is empty, too long, or not text
 */
export function encodeName(name: string): string {
  const valid = `a text of 1 to ${MAX_BYTES} bytes when percent-encoded`;
  const refuse = (why: string) =>
    cgroupRefusal('bad-name', `${display(name)} cannot be the name of a cgroup: ${why}`, {
      value: name,
      valid,
    });
  if (typeof name !== 'string' || name === '') throw refuse('it is empty or not text');
  let encoded: string;
  try {
    encoded = encodeURIComponent(name).replaceAll('.', '%2E');
  } catch {
    throw refuse('it contains half of a surrogate pair');
  }
  if (CONTROL_FILES.includes(encoded)) encoded = `%${encoded.charCodeAt(0).toString(16)}${encoded.slice(1)}`;
  if (encoded.length > MAX_BYTES) throw refuse('it is too long');
  return encoded;
}

/** The name that {@link encodeName} encodes like this; undefined if there is none. */
export function decodeName(encoded: string): string | undefined {
  try {
    const name = decodeURIComponent(encoded);
    return encodeName(name) === encoded ? name : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Checks the path of numalign's root.
 * @throws ERR_CGROUP for anything but a plain absolute path below the hierarchy's own root
 */
export function checkRootPath(path: string): void {
  const valid =
    'an absolute path inside the hierarchy, such as "/numalign", without "." and ".." and not "/"';
  const isPlain = (part: string) => !['', '.', '..'].includes(part) && !/\p{Cc}/u.test(part);
  if (typeof path === 'string' && path.startsWith('/') && path.split('/').slice(1).every(isPlain)) return;
  const message = `the cgroup root must be ${valid}, not ${display(path)}`;
  throw new NumalignError('ERR_CGROUP', message, { reason: 'bad-path', value: path, valid });
}

/**
 * Checks a folder of a hierarchy and all folders above it: no links, and no other mounts. Missing
 * folders are fine. REQUIRES: `folder` is `point` or plainly below it.
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
        : 'not a folder';
    throw cgroupRefusal('bad-path', `${path} is ${what}`, { path, value: folder, valid });
  }
}

const UNIT = /\.(service|scope|slice|socket|mount|swap)$/;

/** The innermost systemd unit that contains a folder or is the folder. */
export function unitOf(point: string, folder: string): string | undefined {
  const parts = folder.slice(point.length).split('/');
  const last = parts.findLastIndex((part) => UNIT.test(part));
  return last < 0 ? undefined : point + parts.slice(0, last + 1).join('/');
}

/**
 * True if systemd leaves the inside of a unit to others (`Delegate=`). systemd marks such a cgroup
 * with the attribute `trusted.delegate`, which only root can see, and with `user.delegate` if the
 * kernel supports it. It also gives the cgroup to the unit's user.
 */
export function isDelegated(unit: string): boolean {
  const found = statSync(unit, { throwIfNoEntry: false });
  if (!found) return false;
  return (
    found.uid !== 0 ||
    ['user.delegate', 'trusted.delegate'].some((name) => native.extendedAttribute(unit, name) === '1')
  );
}
