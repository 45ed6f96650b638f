// The tarball that `npm pack` makes, and commands as a user's shell runs them.
import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const ROOT = fileURLToPath(new URL('../..', import.meta.url));

export interface Tarball {
  path: string;
  bytes: number;
  unpackedBytes: number;
  files: string[];
}

/** Runs `npm pack`, with all that it makes first. `args`: `--workspace` and its folder. */
export function pack(folder: string, args: string[] = []): Tarball {
  const options = ['--json', '--foreground-scripts=false', '--pack-destination', folder];
  const { stdout } = npm(['pack', ...options, ...args], { cwd: ROOT });
  const [packed] = JSON.parse(stdout) as [
    { filename: string; size: number; unpackedSize: number; files: { path: string }[] },
  ];
  return {
    path: join(folder, packed.filename),
    bytes: packed.size,
    unpackedBytes: packed.unpackedSize,
    files: packed.files.map(({ path }) => path),
  };
}

export interface Run {
  status: number | null;
  stdout: string;
  stderr: string;
}

interface Options {
  cwd: string;
  env?: Record<string, string>;
  /** On a machine without compiler and hwloc, as far as the command can see. It takes root. */
  bare?: boolean;
  mayFail?: boolean;
}

const PROGRAMS =
  /^((.*-)?(g\+\+|gcc|c\+\+|cc|clang|clang\+\+|cpp|ld)(-\d+)?|make|gmake|cmake|pkg-config|pkgconf|python3?(\.\d+)?)$/;
const LIBRARIES = /^libhwloc\./;
function hiddenFiles(): string[] {
  const inFolder = (folder: string, pattern: RegExp) =>
    (readdirSync(folder) as string[]).filter((name) => pattern.test(name)).map((name) => join(folder, name));
  return [
    ...inFolder('/usr/bin', PROGRAMS),
    ...readdirSync('/usr/lib')
      .filter((name) => name.endsWith('-linux-gnu'))
      .flatMap((name) => inFolder(join('/usr/lib', name), LIBRARIES)),
    ...inFolder('/usr/include', /^hwloc/),
  ];
}

// In a mount namespace of its own /dev/null lies over what is hidden (mounts follow symbolic
// links): no program, no library, no header.
const HIDE = `
  for path in $HIDDEN; do
    if [ -d "$path" ]; then mount -t tmpfs none "$path"; else mount --bind /dev/null "$path"; fi
  done
  unset HIDDEN
  exec "$@"`;

// Without what `npm run` and others tell those below them, as a user's shell is.
const USERS = Object.fromEntries(
  Object.entries(process.env).filter(
    ([name]) =>
      !/^(npm_(?!config_(registry|cache|cafile|noproxy|(https_)?proxy)$)|INIT_CWD$|LIBC$|PREBUILDS_ONLY$|NUMALIGN_|HWLOC_)/.test(
        name,
      ),
  ),
);

export function run(
  command: string,
  args: string[],
  { cwd, env = {}, bare = false, mayFail = false }: Options,
): Run {
  const line = bare ? ['unshare', '--mount', 'sh', '-ec', HIDE, 'sh', command, ...args] : [command, ...args];
  const { status, stdout, stderr, error } = spawnSync(line[0]!, line.slice(1), {
    cwd,
    encoding: 'utf8',
    maxBuffer: 1 << 28,
    timeout: 40 * 60_000,
    env: { ...USERS, ...env, ...(bare ? { HIDDEN: hiddenFiles().join(' ') } : {}) },
  });
  if (error) throw error;
  if (status !== 0 && !mayFail) throw new Error(`${line.join(' ')} ended with ${status}\n${stdout}${stderr}`);
  return { status, stdout, stderr };
}

export const npm = (args: string[], options: Options) => run('npm', args, options);
