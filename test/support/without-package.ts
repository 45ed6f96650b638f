// The built package in a project that lacks another package.
import { cpSync, mkdirSync, readdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

/** Fills a folder with it; returns the folder's dist. */
export function installWithout(name: string, folder: string): string {
  cpSync(join(ROOT, 'dist'), join(folder, 'dist'), { recursive: true });
  cpSync(join(ROOT, 'package.json'), join(folder, 'package.json'));
  symlinkSync(join(ROOT, 'build'), join(folder, 'build'));
  mkdirSync(join(folder, 'node_modules'));
  for (const each of readdirSync(join(ROOT, 'node_modules'))) {
    if (each !== name) symlinkSync(join(ROOT, 'node_modules', each), join(folder, 'node_modules', each));
  }
  return join(folder, 'dist');
}
