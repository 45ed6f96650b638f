// Agents of several users, who share a state folder as a group.
import { spawnSync } from 'node:child_process';
import { chmodSync, chownSync, mkdirSync, rmSync } from 'node:fs';
import { pathToFileURL } from 'node:url';

// An id that the machine does not use.
const GROUP = 54340;
export const USERS = [54341, 54342];

/** The beginning of a command that runs as a user of the group. */
export const asUser = (user) => ['setpriv', `--reuid=${user}`, `--regid=${user}`, `--groups=${GROUP}`];

/** True if this is root, and others can run the same Node and load the packages. */
export function canBeUsers(packages) {
  if (process.getuid() !== 0) return false;
  const [command, ...options] = [...asUser(USERS[0]), process.execPath, '--input-type=module', '-e'];
  return packages.every((path) => {
    const text = `await import(${JSON.stringify(pathToFileURL(`${path}/dist/index.js`))})`;
    return spawnSync(command, [...options, text]).status === 0;
  });
}

/** A new state folder that the group may use, in place of the old one. */
export function makeSharedFolder(path) {
  rmSync(path, { recursive: true, force: true });
  mkdirSync(path);
  chownSync(path, 0, GROUP);
  chmodSync(path, 0o2770);
}
