// Where scenarios make their state folders: on a disk, and in memory.
import { statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';

const TMPFS = 0x01021994;
const NAMES = new Map([
  [TMPFS, 'tmpfs'],
  [0xef53, 'ext4'],
  [0x58465342, 'xfs'],
  [0x9123683e, 'btrfs'],
  [0x794c7630, 'overlay'],
]);

function typeOf(path) {
  try {
    return statfsSync(path).type;
  } catch (error) {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  }
}

function parent(where, paths, isWanted) {
  const path = paths.find((each) => isWanted(typeOf(each)));
  if (path === undefined) return [];
  const type = typeOf(path);
  return [{ where, path, fileSystem: NAMES.get(type) ?? `file system 0x${type.toString(16)}` }];
}

/** `{ where, path, fileSystem }` of each that exists; `where` is disk or tmpfs. */
export const stateParents = () => [
  ...parent('disk', [tmpdir(), '/var/tmp', process.cwd()], (type) => type !== undefined && type !== TMPFS),
  ...parent('tmpfs', ['/dev/shm', tmpdir()], (type) => type === TMPFS),
];
