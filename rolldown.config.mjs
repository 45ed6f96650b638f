// The JavaScript of the package: a file for each entry of package.json, for what the source loads by
// import(), and few for what these share, since Node takes up to a millisecond for each.
import { readdirSync } from 'node:fs';
import { resolve } from 'node:path';
import { defineConfig, rolldown } from 'rolldown';

const pathOf = (entry) => `lib/entries/${entry}.ts`;
const inputOf = (entries) => Object.fromEntries(entries.map((entry) => [`entries/${entry}`, pathOf(entry)]));

const common = {
  external: /^[^./]/, // What the package depends on stays where npm puts it.
  platform: 'node',
  transform: { target: 'es2022' },
};

/** The modules that entries load at once, besides themselves. */
async function modulesOf(...entries) {
  const bundle = await rolldown({ ...common, input: entries.map(pathOf) });
  const { output } = await bundle.generate();
  const files = new Map(output.map((file) => [file.fileName, file]));
  const modules = new Set();
  for (const file of output.filter(({ isEntry }) => isEntry)) add(file, files, modules);
  return modules;
}

function add({ imports, moduleIds, facadeModuleId }, files, modules) {
  for (const id of moduleIds) if (id !== facadeModuleId) modules.add(id);
  for (const name of imports) if (files.has(name)) add(files.get(name), files, modules);
}

const atImport = await modulesOf('numalign');
const forRequests = await modulesOf('cluster', 'kubelet', 'topology');

const shipped = {
  ...common,
  input: {
    index: pathOf('numalign'),
    preload: 'lib/preload.ts',
    ...inputOf(['cluster', 'diagnostics', 'kubelet', 'tools', 'topology']),
  },
  output: {
    dir: 'dist',
    sourcemap: true,
    comments: false,
    // Half of the time of a start is the reading of code. Lines and the names in stack traces stay.
    minify: {
      compress: true,
      mangle: { keepNames: true, toplevel: false },
      codegen: { removeWhitespace: false },
    },
    // A process that was started before the package was replaced must not load files of another one.
    chunkFileNames: '[name]-[hash].js',
    codeSplitting: {
      groups: [
        { name: 'common', test: (id) => atImport.has(id), priority: 2 },
        { name: 'requests', test: (id) => forRequests.has(id), priority: 1 },
        { name: 'shared', minShareCount: 2 },
      ],
    },
  },
};

// For tests, which use all modules of lib and of packages/metrics, and the program of packages/cli. They
// share one file, which loads in a tenth of the time that its modules take.
const modulesIn = (folder) =>
  readdirSync(folder, { recursive: true })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => `${folder}/${name}`);
const TESTED = [...modulesIn('lib'), ...modulesIn('packages/metrics/lib'), 'packages/cli/lib/program.ts'];
/** What acts when it is loaded. */
const ACTIVE = ['lib/preload.ts', pathOf('cluster')].map((path) => resolve(path));

const forTests = {
  ...common,
  input: Object.fromEntries(TESTED.map((path) => [path.slice(0, -'.ts'.length), path])),
  external: (id) => !/^([./]|@?numalign\b)/.test(id),
  tsconfig: 'tsconfig.json',
  output: {
    dir: 'dist-test',
    sourcemap: true,
    chunkFileNames: '[name].js',
    codeSplitting: { groups: [{ name: 'all', test: (id) => !ACTIVE.includes(id) }] },
  },
};

export default defineConfig([shipped, forTests]);
