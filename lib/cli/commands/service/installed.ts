// Where programs are on this machine.
import { createRequire } from 'node:module';
import { delimiter, join, resolve } from 'node:path';
import type { Launcher } from '../../systemd/service-unit.js';
import { refusalOfFile } from '../../terminal/executable.js';

/** Node, and the command line that runs now. */
export function installedLauncher(): Launcher {
  // The package by its own name: the same from any of its files.
  const manifest = createRequire(import.meta.url).resolve('numalign/package.json');
  return { node: process.execPath, main: join(manifest, '../dist/cli/main.js') };
}

/** The absolute path of a program, as a shell finds it here; its name where it is not found. */
export function programPath(name: string): string {
  if (name.includes('/')) return resolve(name);
  const folders = (process.env.PATH ?? '').split(delimiter).filter((folder) => folder.startsWith('/'));
  const paths = folders.map((folder) => join(folder, name));
  return paths.find((path) => refusalOfFile(path) === undefined) ?? name;
}
