// Tests run the built package, which loads in a tenth of the time that the modules of lib/ take.
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Plugin } from 'vite';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

export const builtLibrary: Plugin = {
  name: 'built-library',
  enforce: 'pre',
  resolveId(source, importer) {
    if (!importer || !source.startsWith('.')) return undefined;
    const path = resolve(dirname(importer), source);
    const lib = join(ROOT, 'lib/');
    return path.startsWith(lib)
      ? { id: join(ROOT, 'dist', path.slice(lib.length)), external: true }
      : undefined;
  },
};
