// What is installed on this machine: the paths of programs, and systemd.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { delimiter, join, resolve } from 'node:path';
import { refusalOfFile } from './executable.js';

/** The paths of Node and of the command line's entry. */
export interface Launcher {
  readonly node: string;
  readonly main: string;
}

/** Node, and the command line that runs now. */
export function installedLauncher(): Launcher {
  const main = join(import.meta.dirname, 'main.cjs');
  if (existsSync(main)) return { node: process.execPath, main };
  // By the package's name, which works from any of its files, but takes Node two milliseconds.
  const manifest = createRequire(import.meta.filename).resolve('@numalign/cli/package.json');
  return { node: process.execPath, main: join(manifest, '../dist/main.cjs') };
}

/** The absolute path where a shell finds a program; its name if there is none. */
export function programPath(name: string): string {
  if (name.includes('/')) return resolve(name);
  const folders = (process.env.PATH ?? '').split(delimiter).filter((folder) => folder.startsWith('/'));
  const paths = folders.map((folder) => join(folder, name));
  return paths.find((path) => refusalOfFile(path) === undefined) ?? name;
}

/** The release of systemd, such as 252; undefined without it. */
export function systemdRelease(): number | undefined {
  const { stdout } = spawnSync('systemctl', ['--version'], { encoding: 'utf8' });
  const [, release] = /^systemd (\d+)/.exec(stdout ?? '') ?? [];
  return release === undefined ? undefined : Number(release);
}
