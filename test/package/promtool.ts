// promtool, out of Debian's package prometheus: downloaded once, installed nowhere.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
// @ts-expect-error: it has no types.
import { cacheFolder } from '../../scripts/cache-folder.mjs';
// @ts-expect-error: it has no types.
import { unpackPackages } from '../vm/debian-packages.mjs';

/** Its path. @throws Error where the package cannot be had */
export function preparePromtool(): string {
  const folder = join(cacheFolder('numalign-promtool'), 'root');
  const program = join(folder, 'usr/bin/promtool');
  if (!existsSync(program)) unpackPackages(['prometheus'], folder, []);
  return program;
}

export const hasApt = spawnSync('apt-get', ['--version']).status === 0;
