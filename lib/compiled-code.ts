// Code that V8 compiled when a package was installed: reading that takes a third of the time that
// compiling does. It is trusted as the code itself is. Without it, or where anything is unusual, Node
// loads the modules as it loads all others.
import type { Module } from 'node:module';
import type { Script } from 'node:vm';
import { openAddon } from './base/load-addon.js';
import type { NativeCode, Source } from './base/native-files.js';

const { closeSync, constants, openSync, statSync } = process.getBuiltinModule('node:fs');
const { basename, dirname, join } = process.getBuiltinModule('node:path');
const vm = process.getBuiltinModule('node:vm');

type AnyFunction = (...args: any[]) => unknown;
/** What `node:module` has besides its types. */
interface ModuleClass {
  new (file: string, parent?: Module): Module;
  readonly _cache: Record<string, Module | undefined>;
  readonly _extensions: Record<string, AnyFunction | undefined>;
  readonly prototype: { readonly _compile: AnyFunction };
  createRequire(file: string): NodeJS.Require;
  wrap(source: string): string;
}
const Modules = process.getBuiltinModule('node:module') as unknown as ModuleClass;

let nodeSize: number | undefined;
let last: { readonly loaders: readonly unknown[]; readonly node: string } | undefined;

/**
 * Where a package keeps what this Node has compiled, if Node itself loads the modules here. V8 does not
 * notice code of another Node with the same V8, and may crash.
 */
export function compiledFolder(packageFolder: string): string {
  const { _extensions, prototype } = Modules;
  // Tools that look at code replace one of these: theirs has another text, and that another length.
  const loaders = [prototype._compile, _extensions['.js'], _extensions['.cjs']];
  if (!last?.loaders.every((loader, i) => loader === loaders[i])) {
    nodeSize ??= statSync(process.execPath).size;
    const { version, arch } = process;
    last = { loaders, node: `${version}-${arch}-${nodeSize}-${loaders.join('').length}` };
  }
  return `${packageFolder}/compiled/${last.node}`;
}

/** The file of `path` beside a module. A first join() takes Node longer than the rest of it. */
const fileBeside = (module: string, path: string) =>
  path.startsWith('./') ? dirname(module) + path.slice(1) : join(dirname(module), path);

/** Whether something else may want to see this code loaded or run, or is to run it. */
function isUnusual(): boolean {
  const { env, execArgv, versions } = process;
  return (
    ['bun', 'deno', 'electron'].some((name) => name in versions) ||
    env.NODE_DISABLE_COMPILE_CACHE !== undefined ||
    // V8 counts what runs in code that was compiled for that.
    env.NODE_V8_COVERAGE !== undefined ||
    (process as { sourceMapsEnabled?: boolean }).sourceMapsEnabled !== false ||
    // Policies of Node 20 compare modules with their checksums.
    [...execArgv, env.NODE_OPTIONS].join(' ').includes('-policy')
  );
}

// The function around a module.
const [PROLOGUE, EPILOGUE] = Modules.wrap('\0').split('\0') as [string, string];

let addon: NativeCode | undefined;

/** It reads modules sooner than Node does, and has checksums without all streams of Node. */
function addonFor(): NativeCode {
  addon ??= openAddon(dirname(import.meta.dirname)) as NativeCode | undefined;
  if (!addon) throw new Error('there is no addon');
  return addon;
}

/** The source in this file, in the function. */
export function readSource(fd: number): Source {
  const source = addonFor().readSource(fd, PROLOGUE, EPILOGUE);
  if (!source) throw new Error('the file is being written');
  return source;
}

/** A file of compiled code, of the source in `file`. */
export const compiledFile = (code: Buffer, file: string, { sum }: Source): Buffer =>
  addonFor().withHead(code, file, sum);

const FLAGS = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

// While modules are loaded, one after the other, their code is read to the same pages: the kernel takes
// longer to clear a new one than it takes to read one.
const MOST_BYTES = 2 ** 21;
let scratch: Buffer | undefined;

const trustedFolders = new Set<string>();

/** Where the compiled code of a folder dist/ is; undefined if others may have written it, or there is none. */
function trustedFolder(dist: string): string | undefined {
  const folder = compiledFolder(dirname(dist));
  if (!trustedFolders.has(folder) && !addonFor().isTrustedFolder(folder)) return undefined;
  trustedFolders.add(folder);
  return folder;
}

/** The compiled code of this source, as of the one in `file`; undefined where there is none. */
function compiledCode(file: string, { sum }: Source): Buffer | undefined {
  const folder = trustedFolder(dirname(file));
  if (folder === undefined) return undefined;
  const room = scratch ?? Buffer.allocUnsafeSlow(MOST_BYTES);
  const size = addonFor().readCode(`${folder}/${basename(file)}.bin`, file, sum, room);
  return size === undefined ? undefined : room.subarray(0, size);
}

// V8 has options that change its code, so that it rejects all files.
let isRejected = false;

/** What a module exports that has run. The ES modules of Node put some here that have not. */
function exportsOf(file: string): unknown {
  const known = Modules._cache[file];
  return known?.loaded ? known.exports : undefined;
}

/**
 * The require() of a module: what has been loaded is found without looking for its file, and this package
 * without its manifest. Node takes two milliseconds to read the `exports` of one.
 */
const requireOf = (file: string) => (id: string) => {
  // Most are files beside it, which need no regular expression.
  const [isEntry, name] = (id.startsWith('numalign') && /^numalign(?:\/(\w+))?$/.exec(id)) || [];
  if (isEntry) return loadEntry(`${import.meta.dirname}/${name ? `entries/${name}` : 'index'}.cjs`);
  return exportsOf(fileBeside(file, id)) ?? Modules.createRequire(file)(id);
};

/**
 * Loads a module as require() does.
 * @param cachedData compiled code, which V8 may reject
 * @returns what V8 has compiled, to which functions are added as they are called
 */
export function loadModule(
  file: string,
  parent: Module | undefined,
  { text }: Source,
  cachedData?: Buffer,
): Script {
  const script = new vm.Script(text, {
    filename: file,
    // Columns are those of the file.
    columnOffset: -PROLOGUE.length,
    ...(cachedData && { cachedData }),
  });
  isRejected ||= script.cachedDataRejected === true;
  const module = Object.assign(new Modules(file, parent), { filename: file, paths: parent?.paths ?? [] });
  Modules._cache[file] = module;
  try {
    const { exports } = module;
    const run = script.runInThisContext();
    run.call(exports, exports, requireOf(file), module, file, dirname(file));
    module.loaded = true;
    return script;
  } catch (error) {
    delete Modules._cache[file];
    throw error;
  }
}

function sourceOf(file: string): Source {
  const fd = openSync(file, constants.O_RDONLY);
  try {
    return readSource(fd);
  } finally {
    closeSync(fd);
  }
}

// Another module system, such as a bundler's, has modules of its own.
const isOfNode = (parent: Module) => Modules._cache[parent.filename] === parent && !isUnusual();

/**
 * Loads modules from compiled code, so that the require() of `parent` finds them loaded. It never
 * throws: what it does not load, require() loads, or says why not.
 * @param parent of another module system, such as a bundler's, it loads nothing
 */
export function loadCompiled(parent: Module, paths: readonly string[]): void {
  const isOutermost = scratch === undefined;
  try {
    if (!isOfNode(parent)) return;
    scratch ??= Buffer.allocUnsafeSlow(MOST_BYTES);
    for (const path of paths) {
      const file = fileBeside(parent.filename, path);
      if (isRejected || Modules._cache[file]) continue;
      const source = sourceOf(file);
      const code = compiledCode(file, source);
      if (code) loadModule(file, parent, source, code);
    }
  } catch {
    // There is none, mostly.
  } finally {
    if (isOutermost) scratch = undefined;
  }
}

/**
 * Returns what an entry of the package exports, for the ES module that has this code too. It is the module
 * that require() finds.
 */
export function loadEntry(file: string): unknown {
  try {
    // Where no compiled code is, other tools may want to see the entry too.
    if (!Modules._cache[file] && !isUnusual() && trustedFolder(import.meta.dirname) !== undefined) {
      const filename = `${import.meta.dirname}/compiled-code.cjs`;
      const exports = { loadCompiled, loadLater };
      Modules._cache[filename] ??= Object.assign(new Modules(filename), { filename, loaded: true, exports });
      loadModule(file, undefined, sourceOf(file));
    }
  } catch {
    // Node fails too, with a better error.
  }
  return exportsOf(file) ?? Modules.createRequire(file)(file);
}

const lateModules = new Map<string, () => unknown>();

/**
 * Returns a function that returns what a module exports, and loads it at its first call. The file is
 * open until then: the package may be replaced meanwhile, while the process has grants to release.
 * Where {@link loadCompiled} loads nothing, require() finds it.
 */
export function loadLater(parent: Module, path: string): () => unknown {
  // A module of a bundle has no file. The addon cannot be bundled either, which says so first.
  if (!parent.filename) return () => parent.require(path);
  const file = fileBeside(parent.filename, path);
  const known = lateModules.get(file);
  if (known) return known;
  let fd = isOfNode(parent) ? unlessThrown(() => openSync(file, FLAGS)) : undefined;
  /** Once: then the descriptor is closed, and its number another file's. */
  const takeSource = () => {
    if (fd === undefined) return undefined;
    const source = unlessThrown(() => readSource(fd!));
    closeSync(fd);
    fd = undefined;
    return source;
  };
  const load = () => {
    const source = takeSource();
    if (!source) return parent.require(path);
    loadModule(file, parent, source, isRejected ? undefined : unlessThrown(() => compiledCode(file, source)));
    return exportsOf(file);
  };
  let exports: unknown;
  const exported = () => (exports ??= exportsOf(file) ?? load());
  lateModules.set(file, exported);
  return exported;
}

function unlessThrown<T>(run: () => T): T | undefined {
  try {
    return run();
  } catch {
    return undefined;
  }
}
