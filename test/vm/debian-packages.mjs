// Debian packages that are downloaded and unpacked, but not installed.
import { spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';

const backportsOf = (release) =>
  `deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian ${release}-backports main\n`;

export function run(command, args, options = {}) {
  const { status, stdout, stderr, error } = spawnSync(command, args, { maxBuffer: 1 << 28, ...options });
  if (status === 0) return stdout;
  throw new Error(`${command} ${args.join(' ')}: ${error?.message ?? `${stderr}`.trim()}`);
}

/**
 * The options with which apt uses only these sources. Its lists are kept in `folder`. The machine's
 * own apt stays unchanged. `more`: options for the update of the lists.
 */
export function sourceOptions(folder, name, sources, more = []) {
  const [lists, cache] = ['lists', 'cache'].map((each) => join(folder, each));
  for (const each of [lists, join(cache, 'archives')]) mkdirSync(join(each, 'partial'), { recursive: true });
  const list = join(folder, `${name}.list`);
  writeFileSync(list, sources);
  const places = [`Dir::Etc::sourcelist=${list}`, `Dir::State::lists=${lists}`, `Dir::Cache=${cache}`];
  const flags = [...places, 'Dir::Etc::sourceparts=-'].flatMap((option) => ['-o', option]);
  run('apt-get', [...flags, ...more, '-q', 'update']);
  return flags;
}

/** The options with which apt uses only the backports. */
export const backportsOptions = (cache) =>
  sourceOptions(join(cache, 'apt'), 'backports', backportsOf('bookworm'));

/** The same for the backports of the next Debian, for packages that need none of its libraries. */
export const newestOptions = (cache) =>
  sourceOptions(join(cache, 'apt-newest'), 'backports', backportsOf('trixie'));

/** The Debian mirror in this machine's apt configuration. */
export function debianMirror() {
  const codename = /^VERSION_CODENAME=(\w+)$/m.exec(readFileSync('/etc/os-release', 'utf8'))?.[1];
  const format = ['--format', '$(REPO_URI) $(RELEASE) $(COMPONENT)', 'Created-By: Packages'];
  const lines = run('apt-get', ['indextargets', ...format])
    .toString()
    .split('\n');
  const mirror = lines
    .map((line) => line.split(' '))
    .find(([, release, component]) => release === codename && component === 'main');
  if (mirror === undefined) throw new Error(`apt has no source with the main component of ${codename} here`);
  return mirror[0];
}

/**
 * The contents of the packages in the folder `to`: either all of them, or the folder does not
 * exist. `flags`: options for apt. `finish`: changes them before.
 */
export function unpackPackages(names, to, flags, finish = () => {}) {
  mkdirSync(dirname(to), { recursive: true });
  const temporary = mkdtempSync(join(dirname(to), 'new-'));
  try {
    run('apt-get', [...flags, '-q', 'download', ...names], { cwd: temporary });
    const archives = readdirSync(temporary).filter((file) => file.endsWith('.deb'));
    for (const archive of archives) run('dpkg-deb', ['-x', archive, 'tree'], { cwd: temporary });
    finish(join(temporary, 'tree'));
    rmSync(to, { recursive: true, force: true });
    renameSync(join(temporary, 'tree'), to);
  } finally {
    rmSync(temporary, { recursive: true, force: true });
  }
}

/**
 * The folder of a Debian of this release with these packages, made in `cache` unless it is there.
 * @throws Error without root, or if the mirror is out of reach
 */
export function prepareDebian(cache, release, packages) {
  const tree = join(cache, release);
  if (existsSync(tree)) return tree;
  const temporary = mkdtempSync(join(cache, 'new-'));
  try {
    const words = ['--variant=minbase', `--include=${packages.join(',')}`, release, join(temporary, 'tree')];
    run('debootstrap', [...words, debianMirror()], {
      env: { ...process.env, PATH: `${process.env.PATH}:/usr/sbin:/sbin` },
    });
    renameSync(join(temporary, 'tree'), tree);
  } finally {
    rmSync(temporary, { recursive: true, force: true });
  }
  return tree;
}
