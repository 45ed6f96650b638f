// Tests run the built packages, which load in a tenth of the time that their modules take.
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Plugin } from 'vite';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

/** What a module is in dist: a file of its own, but in packages/cli only its program is one. */
function builtOf(path: string): string | undefined {
  if (path === 'packages/cli/lib/program.js') return 'packages/cli/dist/program.cjs';
  const [, before, module] = /^(packages\/metrics\/|)lib\/(.+)$/.exec(path) ?? [];
  return module === undefined ? undefined : `${before}dist/${module}`;
}

export const builtLibrary: Plugin = {
  name: 'built-library',
  enforce: 'pre',
  resolveId(source, importer) {
    if (!importer || !source.startsWith('.')) return undefined;
    const path = resolve(dirname(importer), source).slice(ROOT.length);
    const built = builtOf(path);
    return built === undefined ? undefined : { id: join(ROOT, built), external: true };
  },
};
