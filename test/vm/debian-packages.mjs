// Packages of Debian's that are downloaded and unpacked, and installed nowhere.
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

const BACKPORTS =
  'deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian bookworm-backports main\n';

export function run(command, args, options = {}) {
  const { status, stdout, stderr, error } = spawnSync(command, args, { maxBuffer: 1 << 28, ...options });
  if (status === 0) return stdout;
  throw new Error(`${command} ${args.join(' ')}: ${error?.message ?? `${stderr}`.trim()}`);
}

/** The options by which apt looks at the backports alone. Its lists are kept in `cache`. */
export function backportsOptions(cache) {
  const folder = join(cache, 'apt');
  const lists = join(folder, 'lists');
  mkdirSync(join(lists, 'partial'), { recursive: true });
  const list = join(folder, 'backports.list');
  writeFileSync(list, BACKPORTS);
  const options = [`Dir::Etc::sourcelist=${list}`, 'Dir::Etc::sourceparts=-', `Dir::State::lists=${lists}`];
  const flags = options.flatMap((option) => ['-o', option]);
  run('apt-get', [...flags, '-q', 'update']);
  return flags;
}

/**
 * What is in the packages, in the folder `to`: all of it, or the folder is not there. `flags`:
 * options for apt.
 */
export function unpackPackages(names, to, flags) {
  mkdirSync(dirname(to), { recursive: true });
  const temporary = mkdtempSync(join(dirname(to), 'new-'));
  try {
    run('apt-get', [...flags, '-q', 'download', ...names], { cwd: temporary });
    const archives = readdirSync(temporary).filter((file) => file.endsWith('.deb'));
    for (const archive of archives) run('dpkg-deb', ['-x', archive, 'tree'], { cwd: temporary });
    rmSync(to, { recursive: true, force: true });
    renameSync(join(temporary, 'tree'), to);
  } finally {
    rmSync(temporary, { recursive: true, force: true });
  }
}
