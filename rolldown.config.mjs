// The JavaScript of the package: a file for each entry of package.json, for what the source loads by
// import(), and few for what these share, since Node takes up to a millisecond for each.
import { existsSync, readdirSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { defineConfig, rolldown } from 'rolldown';
import { inAscii, lateParts, loader, loadingCompiled, minified } from './scripts/bundles.mjs';
import { comparingErrors } from './scripts/error-facts.mjs';

const common = {
  external: /^[^./]/, // What the package depends on stays where npm puts it.
  platform: 'node',
  transform: { target: 'es2022' },
};

const entry = (name) => [`entries/${name}`, `lib/entries/${name}.ts`];
const ENTRIES = {
  index: 'lib/entries/numalign.ts',
  preloading: 'lib/preloading.ts',
  ...Object.fromEntries(['cluster', 'diagnostics', 'kubelet', 'tools', 'topology'].map(entry)),
};

// What modules load at once, besides themselves, is in one file, without what is in files before it.
const LAYERS = {
  common: ['entries/numalign'],
  requests: ['entries/cluster', 'entries/kubelet', 'entries/topology'],
  shared: ['entries/diagnostics', 'entries/tools'],
  managers: ['opening/door'],
};

/** What the tools have besides. */
const WORKLOAD = {
  name: 'workload',
  test: /\/lib\/input\/pods\/workload\.ts$/,
  includeDependenciesRecursively: false,
};

/** The files of the layers, and what rolldown adds to these. */
const LAYER = `(?:${[...Object.keys(LAYERS), WORKLOAD.name].join('|')}|rolldown-runtime)-`;
const IS_LAYER = new RegExp(`^${LAYER}`);

/**
 * Of the layer `managers`, what most programs never come to, by file: a room a line, with the names
 * of its modules or all of it. Other files load it when they first use it.
 */
const LATE_FILES = {
  groups: `
    cgroups: cpuset-hierarchy
    cgroups/files: cgroup-path changes linux-version memory-nodes
    cgroups/groups
    enforcement: asked-masks comparison group-memory relocation
    enforcement/layout: cpusets differences facts grant-groups shared-group steps`,
  kubelet: `
    input: kubelet-configuration
    input/pods: qos-class
    kubelet: cpu-manager-state go-json go-value kubelet-format memory-manager-state`,
  views: `
    admission: pod-container
    decision/flags: flag-inputs
    enforcement/members: survivors
    state: difference read-only-store
    status: kept-files read-status state-reading status`,
  seldom: `
    account: kubelet-record
    admission: plan planner
    admission/grants: admit-all attachment resize shared-child shared-membership substitute transfer
    adoption
    audit: account counters snapshot task-scan
    changes: adjuster answer carry-out conduct defragment growth-waits move-grant move-target moved-room
    changes: shrink-grants
    decision: booking claims explanation rejection resized-pod resource-explanations
    decision/changes
    decision/cpus: parts
    decision/devices: device-hints device-resources
    decision/flags: kubelet-flags
    decision/joint: choice-text joint-rules nodes-ahead score
    decision/memory: hugepages-taken
    grants: empty-grant empty-part facts
    kubelet: kubelet-conflict kubelet-export kubelet-facts kubelet-import kubelet-pods kubelet-states
    kubelet/record: kubelet-holdings record-kubelet
    machine: cpu-nodes hugepages
    pools
    processes: named-processes
    quiet: kernel-work look machine-quieter outcome plan record writing
    quiet/kernel: irqbalance-client cpu-mask cpufreq file-setting idle-states kernel-files mask-setting network-queues
    quiet/parts
    quiet/resctrl
    reconcile: fallen-levels repair thread-drift
    state: memory-store turns until
    state/files: put-aside
    threads: followers placement thread-move worker`,
};

function modulesOf(rooms) {
  const modules = rooms
    .trim()
    .split('\n')
    .flatMap((line) => {
      const [room, names] = line.trim().split(': ');
      const files = names?.split(' ').map((name) => `${name}.ts`) ?? readdirSync(`lib/${room}`);
      return files.map((name) => resolve('lib', room, name));
    });
  const missing = modules.filter((path) => !existsSync(path));
  if (missing.length > 0) throw new Error(`there is no ${missing}`);
  return new Set(modules);
}

/** The modules that some load at once. */
async function loadedBy(names) {
  const bundle = await rolldown({ ...common, input: names.map((name) => `lib/${name}.ts`) });
  const { output } = await bundle.generate();
  const files = new Map(output.map((file) => [file.fileName, file]));
  const loaded = new Set();
  const add = ({ imports, moduleIds, facadeModuleId }) => {
    for (const id of moduleIds) if (id !== facadeModuleId || !/\/entries\//.test(id)) loaded.add(id);
    for (const name of imports) if (files.has(name)) add(files.get(name));
  };
  for (const file of output.filter(({ isEntry }) => isEntry)) add(file);
  return loaded;
}

// What no manager needs is in files that rolldown makes for the entries that do.
const forManagers = await loadedBy([...LAYERS.common, ...LAYERS.managers]);
const layers = Object.entries(LAYERS).map(async ([name, starts], i, { length }) => {
  const loaded = await loadedBy(starts);
  return { name, test: (id) => loaded.has(id) && forManagers.has(id), priority: length - i };
});

const lateFiles = Object.entries(LATE_FILES).map(([name, rooms]) => {
  const modules = modulesOf(rooms);
  return { name, test: (id) => modules.has(id), priority: 9, includeDependenciesRecursively: false };
});

const GETTER =
  /Object\.defineProperty\(exports, "([^"]+)", \{\s*enumerable: !0,\s*get: function\(\) \{\s*return ([^;]+);\s*\}\s*\}\)(, |;)/g;

const REQUIRED = /\b(require_\w+) = require\("([^"]+)"\)/g;
// Of a variable, at once, or by import().
const USED = /\b(new )?(require_\w+|require\("([^"]+)"\)(?:\)\.then\(\((\w+)\) => \4)?)\.([\w$]+)/g;

/** Whether a variable has a value besides that of its declaration, or another of its name has. */
const isAssigned = (name, code) =>
  code.match(new RegExp(`\\b${name} ([-+*/|&?]*=(?![=>])|\\+\\+)`, 'g'))?.length > 1;

/**
 * What files have for each other is an array of their values at the end of the file: V8 makes an object of
 * a hundred members in a hundred steps. What changes later, or is in a file that is loaded later, is a
 * function there.
 */
const shortExports = {
  name: 'short-exports',
  generateBundle(_, bundle) {
    const chunks = Object.values(bundle).filter(({ code }) => code);
    const exported = new Map();
    for (const chunk of chunks) {
      if (chunk.isEntry || chunk.isDynamicEntry) continue;
      // All words of these lines: some are variables.
      const variables = new Set(
        chunk.code
          .match(/^(let|var \w+;|var \w+,).*/gm)
          ?.join(' ')
          .match(/\w+/g),
      );
      const members = [];
      const uses = new Map();
      chunk.code = chunk.code.replace(GETTER, (_, name, value, end) => {
        const isFixed = /^"|^\w+$/.test(value) && !variables.has(value) && !isAssigned(value, chunk.code);
        uses.set(name, `[${members.length}]${isFixed ? '' : '()'}`);
        members.push(isFixed ? value : `() => ${value}`);
        return end === ';' ? `module.exports = [\n${members.join(',\n')}\n];` : '';
      });
      exported.set(basename(chunk.fileName), uses);
    }
    for (const chunk of chunks) {
      const files = new Map(
        [...chunk.code.matchAll(REQUIRED)].map(([, name, path]) => [name, exported.get(basename(path))]),
      );
      chunk.code = chunk.code.replace(USED, (use, made = '', file, path, _, name) => {
        const uses = path ? exported.get(basename(path)) : files.get(file);
        if (!uses) return use;
        if (!uses.has(name)) throw new Error(`${path ?? file} exports no ${name}`);
        const value = file + uses.get(name);
        return made && value.endsWith(')') ? `new (${value})` : made + value;
      });
      for (const [file, uses] of files)
        if (uses && new RegExp(`\\b${file}\\.`).test(chunk.code))
          throw new Error(`${chunk.fileName} uses ${file}, which is an array, as an object`);
    }
  },
};

/**
 * Uses of a late file are calls of a function, which loads it. An entry has all that it exports at once.
 * So does import() load a layer.
 */
const loadingLate = {
  name: 'loading-late',
  generateBundle(_, bundle) {
    const imported = new RegExp(`\\(\\) => require\\(("\\./${LAYER}[^"]+")\\)`, 'g');
    for (const chunk of Object.values(bundle))
      chunk.code &&= chunk.code.replace(
        imported,
        '() => (require("./compiled-code.cjs").loadCompiled(module, [$1]), require($1))',
      );
    const names = Object.keys(LATE_FILES).join('|');
    const required = new RegExp(`\\b(require_(?:${names}) = )require\\(("[^"]+")\\)`, 'g');
    const used = new RegExp(`\\b(new )?(require_(?:${names}))(?=[.[])`, 'g');
    for (const chunk of Object.values(bundle)) {
      if (chunk.isEntry) continue;
      chunk.code &&= chunk.code
        .replace(required, '$1require("./compiled-code.cjs").loadLater(module, $2)')
        .replace(used, (_, made = '', file) => `${made}(${file}())`);
    }
  },
};

/** lib/import-entry.ts as an expression, which is its function: an ES module of its own takes longer. */
async function importEntryText() {
  const bundle = await rolldown({ ...common, external: [], input: 'lib/import-entry.ts' });
  const { output } = await bundle.generate({ format: 'es', comments: false, minify: true });
  const [, code, name] = /^(.*)export ?\{ ?(\w+) as importEntry ?\};\s*$/s.exec(output[0].code);
  return `(() => {${code}return ${name};})()`;
}
const IMPORT_ENTRY = await importEntryText();

/**
 * What import gets: the same, from the same modules. It loads them itself: before Node imports a CommonJS
 * module, it parses it for what it exports, and the first that it requires takes it a millisecond.
 * Bundlers, which do not see that, take the CommonJS module: only Node has the conditions `node-addons`
 * and `module-sync` both.
 */
const esModules = {
  name: 'es-modules',
  generateBundle(_, bundle) {
    for (const { isEntry, name, exports, fileName } of Object.values(bundle)) {
      if (!isEntry) continue;
      const file = basename(fileName);
      // What the default of a CommonJS module is depends on who loads it: here it is what has the
      // name of the file.
      const names = exports.map((each) => (each === 'default' ? `${basename(name)} as default` : each));
      const here = 'import.meta.dirname';
      const folder = `${here}.slice(0, -${join('/dist', dirname(fileName)).length})`;
      const source = exports.includes('default')
        ? `export { ${names.join(', ')} } from './${file}';\n`
        : `export const { ${names.join(', ')} } = ${IMPORT_ENTRY}(${folder}, ${here} + '/${file}');\n`;
      this.emitFile({ type: 'asset', fileName: `${name}.js`, source });
    }
  },
};

/** Parts of Node without require(), which some bundlers leave undefined: numalign says that itself. */
const partsOfNode = {
  name: 'parts-of-node',
  resolveId: (id) => (id.startsWith('node:') ? `\0${id}` : undefined),
  load: (id) =>
    id.startsWith('\0node:') ? `module.exports = process.getBuiltinModule('${id.slice(1)}');` : undefined,
};

/** Functions that most programs do not need. */
const LATE = {
  'node:crypto': ['createHash', 'randomUUID'],
  'node:diagnostics_channel': ['channel', 'subscribe', 'unsubscribe'],
  'node:fs/promises': ['readFile'],
  'node:os': ['availableParallelism', 'freemem', 'release', 'uptime'],
  'node:timers/promises': ['setTimeout'],
};

// CommonJS: what could not be loaded, such as for want of a file descriptor, can be loaded later. Node
// keeps a failed import() for as long as the process lives.
const shipped = {
  ...common,
  input: ENTRIES,
  // Some files of LATE_FILES export more than an entry of the package that is in them.
  preserveEntrySignatures: 'allow-extension',
  external: /^(?!node:)[^./\0]/,
  plugins: [lateParts(LATE), partsOfNode, inAscii, esModules, shortExports, loadingLate],
  output: {
    dir: 'dist',
    format: 'cjs',
    entryFileNames: '[name].cjs',
    sourcemap: true,
    comments: false,
    banner: loadingCompiled(({ imports }) => imports.filter((name) => IS_LAYER.test(name))),
    minify: minified,
    // A process that was started before the package was replaced must not load files of another one.
    chunkFileNames: '[name]-[hash].cjs',
    codeSplitting: { groups: [...(await Promise.all(layers)), ...lateFiles, WORKLOAD] },
  },
};

// An ES module, which awaits.
const preload = {
  ...common,
  input: { preload: 'lib/preload.ts' },
  external: /./,
  output: { dir: 'dist', comments: false },
};

// For tests, which use all modules of lib, packages/claims, packages/metrics and packages/page, and the
// program of packages/cli. All of lib is one file, which loads in a tenth of the time that its modules take.
const modulesIn = (folder) =>
  readdirSync(folder, { recursive: true })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => `${folder}/${name}`);
const TESTED = [
  ...['lib', 'packages/claims/lib', 'packages/metrics/lib', 'packages/page/lib'].flatMap(modulesIn),
  'packages/cli/lib/program.ts',
];
/** What acts when it is loaded. */
const ACTIVE = ['lib/preload.ts', 'lib/entries/cluster.ts'].map((path) => resolve(path));
const isIn = (folder) => (id) => id.startsWith(`${resolve(folder)}/`) && !ACTIVE.includes(id);

const forTests = {
  ...common,
  input: Object.fromEntries(TESTED.map((path) => [path.slice(0, -'.ts'.length), path])),
  external: (id) => !/^([./]|@?numalign\b)/.test(id),
  tsconfig: 'tsconfig.json',
  plugins: [comparingErrors],
  output: {
    dir: 'dist-test',
    sourcemap: true,
    chunkFileNames: '[name].js',
    codeSplitting: {
      groups: [
        { name: 'library', test: isIn('lib'), priority: 2 },
        { name: 'claims', test: isIn('packages/claims'), priority: 1 },
        { name: 'metrics', test: isIn('packages/metrics'), priority: 1 },
        { name: 'page', test: isIn('packages/page'), priority: 1 },
        { name: 'command', test: isIn('packages/cli') },
      ],
    },
  },
};

export default defineConfig([shipped, loader, preload, forTests]);
