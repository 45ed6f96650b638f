// The built packages in a folder, as npm installs them there.
import { cpSync, readdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

const PACKAGES = {
  numalign: '.',
  '@numalign/cli': 'packages/cli',
  '@numalign/metrics': 'packages/metrics',
};

interface Missing {
  /** Packages of others. */
  readonly packages?: readonly string[];
  /** True: without the addon. */
  readonly addon?: boolean;
}

/** Installs them, but for what is missing; returns the folder of the packages. */
export function installIn(folder: string, { packages = [], addon = false }: Missing = {}): string {
  const modules = join(folder, 'node_modules');
  const filter = (path: string) => !/\.(map|d\.ts)$/.test(path);
  for (const [name, path] of Object.entries(PACKAGES)) {
    const from = join(ROOT, path);
    for (const part of ['dist', 'package.json'])
      cpSync(join(from, part), join(modules, name, part), { recursive: true, filter });
  }
  if (!addon) symlinkSync(join(ROOT, 'build'), join(modules, 'numalign/build'));
  for (const name of readdirSync(join(ROOT, 'node_modules'))) {
    if (!['numalign', '@numalign', ...packages].includes(name))
      symlinkSync(join(ROOT, 'node_modules', name), join(modules, name));
  }
  return modules;
}
