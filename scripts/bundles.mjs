// What the configurations of rolldown share: bundles that start from compiled code (lib/compiled-code.ts).
import { fileURLToPath } from 'node:url';

/** Characters beyond ASCII, escaped: with one of them, V8 takes two bytes for each character of a file. */
export const inAscii = {
  name: 'in-ascii',
  generateBundle(_, bundle) {
    const escaped = (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
    for (const chunk of Object.values(bundle))
      if (chunk.code) chunk.code = chunk.code.replace(/[^\0-\x7f]/g, escaped);
  },
};

/**
 * Parts of Node as modules of the bundle, by the functions that are called of them: each is loaded at
 * the first call, since that takes up to two milliseconds.
 */
export const lateParts = (functions) => ({
  name: 'late-parts',
  resolveId: (id) => (id in functions ? `\0${id}` : undefined),
  load: (id) => (id.slice(1) in functions ? latePart(id.slice(1), functions[id.slice(1)]) : undefined),
});

function latePart(id, names) {
  const part = `process.getBuiltinModule('${id}')`;
  const exported = names.map(
    (name) => `export const ${name} = (...args) => (part ??= ${part}).${name}(...args);`,
  );
  return ['let part;', ...exported].join('\n');
}

/** The banner of files that load `filesOf(chunk)` from compiled code, before they require these. */
export const loadingCompiled = (filesOf) => (chunk) => {
  const up = chunk.fileName.includes('/') ? '..' : '.';
  const paths = filesOf(chunk).map((name) => `${up}/${name}`);
  const call = `loadCompiled(module, ${JSON.stringify(paths)})`;
  return paths.length === 0 ? '' : `require('${up}/compiled-code.cjs').${call};`;
};

// Much of the time of a start is the reading of code. Lines and the names in stack traces stay.
export const minified = {
  compress: true,
  mangle: { keepNames: true, toplevel: false },
  codegen: { removeWhitespace: false },
};

/** The file that loads compiled code: it needs no other. */
export const loader = {
  input: { 'compiled-code': fileURLToPath(new URL('../lib/compiled-code.ts', import.meta.url)) },
  platform: 'node',
  transform: { target: 'es2022' },
  output: { dir: 'dist', format: 'cjs', entryFileNames: '[name].cjs', comments: false, minify: minified },
};
