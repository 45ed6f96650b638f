// The JavaScript of the package. Each module of lib is a file of dist, as its types are, but the
// code is in a few files that they share, by when a program needs it: V8 takes more time to read
// code than most of it takes to run, and Node a third of a millisecond for each file. What is in
// another file is loaded where it is first used, and only CommonJS can do that without a promise.
import { readdirSync } from 'node:fs';
import { basename } from 'node:path';
import { defineConfig } from 'rolldown';

// What a module is loaded for: the first pattern that fits names its file. In the wrong one a module
// costs time, and nothing else; test/base/loading.test.ts tells what is loaded when.
const FILES = {
  // What tells that the addon is missing does not load it. And names, of which each program has some.
  common:
    /^(account\/(levels|pod-assignment)|base\/(check-options|errors|kubelet-features|codes\/errno|notices\/notice-delay|text\/.*)|input\/(enforcement-options|policies|values\/quantity))$/,
  // All that a Worker below numalign/preload needs.
  addon: /^base\/(native|wire)$/,
  // `import 'numalign'`.
  library:
    /^(index|supported|admission\/admission-error|children\/thread-counts|grants\/(?!empty|release$).*|input\/config|machine\/(affinity|cpu-set|id-set)|managers\/(?!empty|manager-watch|pin-to|prepare|site).*)$/,
  // A worker loads nothing else.
  cluster: /^(cluster\/|entries\/cluster)/,
  tools: /^(entries\/tools|input\/(devices|pods\/workload))$/,
  kubelet: /^(kubelet\/(?!record\/kubelet-status)|entries\/kubelet)/,
  pools: /^pools\//,
  // Grants that move, grow and shrink.
  moves:
    /^(changes\/(?!move-event|mover$|request-room).*|decision\/changes\/(?!move-steps|placeholder).*|threads\/thread-move)$/,
  // Of grants that ask for it.
  quiet: /^quiet\/(?!quieter|kernel\/demands)/,
  doctor: /^(doctor|entries\/diagnostics)/,
  cgroups:
    /^(cgroups\/(?!files\/(mounts|cgroup-namespace))|enforcement\/layout\/(cpusets|grant-groups|shared-group)$)/,
  // Programs that look, recover, repair; kinds of machines and states that few have.
  rare: /^(grants\/empty|managers\/empty|status\/|admission\/pod-container|enforcement\/(comparison|drift|group-memory|grant-group|layout\/(differences|facts|steps)|members\/survivors)|input\/kubelet-configuration|machine\/(hugepages|machine-json)|processes\/(cgroup-owner|named-processes)|reconcile\/(fallen-levels|granted-threads|repair)|state\/(difference|memory-store|read-only-store|folder\/machine-group))/,
  // From acquire() to release().
  admission:
    /^(changes\/request-room|admission\/(?!changes-under-way|diagnostics|free-hugepages|on-record|transact|warnings)|audit\/(?!watched-grants)|children\/|grants\/release|decision\/(?!changes\/|flags|grant-info|hints\/(hint-providers|merge-hints)|machine-settings|draft\/memory-draft|memory\/(hugepages-taken|memory-tables))|enforcement\/clearing|input\/(?!enforcement-options|given-settings|machine-options|option-table|placement|policies|values\/(duration|memory-types|option-values))|state\/owners\/own-owner|threads\/)/,
  // openManager().
  opening: /./,
};

const fileOf = (id) => {
  const [, module] = /\/lib\/(.*)\.ts$/.exec(id) ?? [];
  return module && Object.keys(FILES).find((file) => FILES[file].test(module));
};

const names = readdirSync('lib', { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts'))
  .map((name) => name.slice(0, -'.ts'.length));
// It awaits, which no CommonJS module can.
const PROGRAM = 'preload';
const inputOf = (modules) => Object.fromEntries(modules.map((name) => [name, `lib/${name}.ts`]));

// What a file loads when it is loaded itself. A program that cannot use the addon is told when it
// starts, and before anything of Node is loaded: where a bundler left no require(), too. A process
// that holds a grant must be able to keep it and to give it back, whatever becomes of the package on
// disk meanwhile.
const isAtOnce = (file, path) =>
  /\/addon\b/.test(path) || (file === 'admission' && /\/(cgroups|rare)\b/.test(path));

/** Loads files of dist, other packages and parts of Node where they are first used. */
const lazyRequire = {
  name: 'lazy-require',
  renderChunk(code, { name: file }) {
    let text = code;
    for (const [line, name, path] of code.matchAll(/^(?:const|let) (\w+) = require\("([^"]+)"\);\n/gm)) {
      if (isAtOnce(file, path)) continue;
      // For esbuild, whose ES modules have no require().
      const load = path.startsWith('node:') ? 'process.getBuiltinModule' : 'require';
      const id = name.replace(/^require_/, '');
      text = text
        .replace(line, () => `let $${id}, ${id}$ = () => ($${id} = ${load}("${path}"));\n`)
        .replace(new RegExp(`(?<![\\w$]|(?<!\\.\\.)\\.)${name}(?=\\.\\w)`, 'g'), `($$${id} ?? ${id}$$())`);
      // Names as these are in no text.
      if (name.includes('_') && new RegExp(`(?<![\\w$])${name}(?![\\w$])`).test(text))
        this.error(`import names from ${path}, not all of it`);
    }
    // No module of lib exports what it sets once more, so that a value does for a getter.
    text = text.replace(
      /^Object\.defineProperty\(exports, "(\w+)", \{\n\s*enumerable: true,\n\s*get: function \(\) \{\n\s*return (\w+(?:\$\w+)?);\n\s*\}\n\}\);/gm,
      'exports.$1 = $2;',
    );
    // Line by line, as the source map has it: what is exported comes last.
    return { code: text, map: null };
  },
};

// What package.json exports, to require() too.
const EXPORTED = /^(index|entries\/.*)$/;

/** Makes ES modules of the modules, which export what their CommonJS does. */
const esModules = {
  name: 'es-modules',
  generateBundle(_, bundle) {
    for (const { isEntry, name, exports, code, fileName } of Object.values(bundle)) {
      if (!isEntry) continue;
      // What the default of a CommonJS module is depends on who loads it: here it is what has the
      // name of the file.
      const names = `{ ${exports.map((each) => (each === 'default' ? `${basename(name)} as default` : each)).join(', ')} }`;
      const isExported = EXPORTED.test(name);
      const source = isExported
        ? `export ${names} from './${basename(fileName)}';\n`
        : `import { createRequire } from 'node:module';
const require = createRequire(import.meta.url), exports = {};
${code}export const ${names} = exports;
`;
      this.emitFile({ type: 'asset', fileName: `${name}.js`, source });
      if (!isExported) delete bundle[fileName];
    }
  },
};

const common = {
  external: /^[^./]/, // What the package depends on stays where npm puts it.
  platform: 'node',
  transform: { target: 'es2022' },
};

export default defineConfig([
  {
    ...common,
    input: inputOf(names.filter((name) => name !== PROGRAM)),
    treeshake: { moduleSideEffects: false },
    preserveEntrySignatures: 'allow-extension',
    plugins: [lazyRequire, esModules],
    output: {
      dir: 'dist',
      format: 'cjs',
      sourcemap: true,
      comments: false,
      entryFileNames: '[name].cjs',
      // A process that was started before the package was replaced must not load files of another one.
      chunkFileNames: '[name]-[hash].cjs',
      codeSplitting: {
        includeDependenciesRecursively: false,
        groups: [{ name: fileOf, debugName: 'files' }],
      },
    },
  },
  {
    ...common,
    external: /./,
    input: inputOf([PROGRAM]),
    output: { dir: 'dist', comments: false },
  },
]);
