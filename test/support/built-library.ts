// Tests run the built packages, which load in a tenth of the time that their modules take.
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Plugin } from 'vite';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

// Modules that are files of their own in dist; those of packages/cli are not, but for its program.
const MODULE = /^(packages\/metrics\/)?lib\/(.+)$|^packages\/cli\/lib\/program\.js$/;

export const builtLibrary: Plugin = {
  name: 'built-library',
  enforce: 'pre',
  resolveId(source, importer) {
    if (!importer || !source.startsWith('.')) return undefined;
    const path = resolve(dirname(importer), source).slice(ROOT.length);
    return MODULE.test(path)
      ? { id: join(ROOT, path.replace(/(^|\/)lib\//, '$1dist/')), external: true }
      : undefined;
  },
};
