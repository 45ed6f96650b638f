// Tests run the modules as they are built for tests, which load in a tenth of the time that they take
// one by one.
import { existsSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Plugin } from 'vite';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const BUILT = join(ROOT, 'dist-test');

const ENTRIES: Readonly<Record<string, string>> = {
  numalign: 'lib/index.js',
  '@numalign/claims': 'packages/claims/lib/index.js',
  '@numalign/metrics': 'packages/metrics/lib/index.js',
  '@numalign/page': 'packages/page/lib/index.js',
  '@numalign/page/listening': 'packages/page/lib/listening.js',
  '@numalign/page/picture': 'packages/page/lib/picture.js',
  '@numalign/page/words': 'packages/page/lib/words.js',
};

/** The path of a module of this project from its root; undefined for one of others. */
function moduleOf(source: string, importer: string): string | undefined {
  if (source.startsWith('.')) return resolve(dirname(importer), source).slice(ROOT.length);
  const [, entry] = /^numalign\/(\w+)$/.exec(source) ?? [];
  return entry === undefined ? ENTRIES[source] : `lib/entries/${entry}.js`;
}

export const builtLibrary: Plugin = {
  name: 'built-library',
  enforce: 'pre',
  resolveId(source, importer) {
    const module = importer && moduleOf(source, importer);
    const built = module && join(BUILT, module);
    return built && existsSync(built) ? { id: built, external: true } : undefined;
  },
};
