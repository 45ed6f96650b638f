// Code that V8 compiled when a package was installed: reading that takes a third of the time that
// compiling does. It is trusted as the code itself is. Without it, or where anything is unusual, Node
// loads the modules as it loads all others.
import type { Module } from 'node:module';
import type { Script } from 'node:vm';
import type { NativeCode, Source } from './base/native-files.js';
import { addonIn, compiledFolder, EPILOGUE, isUnusual, Modules, PROLOGUE } from './code-folder.js';

export { compiledFolder };

const { closeSync, constants, openSync } = process.getBuiltinModule('node:fs');
const { basename, join } = process.getBuiltinModule('node:path');
const vm = process.getBuiltinModule('node:vm');

/** The folder of a file. dirname() looks at each character of a path, and Node has not compiled it yet. */
const folderOf = (file: string) => file.slice(0, file.lastIndexOf('/')) || '/';

/** The file of `path` beside a module. A first join() takes Node longer than the rest of it. */
const fileBeside = (module: string, path: string) =>
  path.startsWith('./') ? folderOf(module) + path.slice(1) : join(folderOf(module), path);

let addon: NativeCode | undefined;

const addonFor = (): NativeCode => (addon ??= addonIn(folderOf(import.meta.dirname)));

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

/** Where the compiled code of a file in dist/ is. */
const codeFolderOf = (file: string) => compiledFolder(folderOf(folderOf(file)));

/** The compiled code of this source, as of the one in `file`; undefined where there is none. */
function compiledCode(file: string, { sum }: Source): Buffer | undefined {
  const room = scratch ?? Buffer.allocUnsafeSlow(MOST_BYTES);
  const size = addonFor().readCode(`${codeFolderOf(file)}/${basename(file)}.bin`, file, sum, room);
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
  { text }: Pick<Source, 'text'>,
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
    run.call(exports, exports, requireOf(file), module, file, folderOf(file));
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
      const found = addonFor().readModule(file, codeFolderOf(file), scratch, PROLOGUE, EPILOGUE);
      if (found) loadModule(file, parent, found, scratch.subarray(0, found.size));
    }
  } catch {
    // There is none, mostly.
  } finally {
    if (isOutermost) scratch = undefined;
  }
}

/** Returns what an entry of the package exports. It is the module that require() finds. */
export function loadEntry(file: string): unknown {
  try {
    const codeFolder = compiledFolder(folderOf(import.meta.dirname));
    // Where no compiled code is, other tools may want to see the entry too.
    if (!Modules._cache[file] && !isUnusual() && addonFor().isTrustedFolder(codeFolder)) {
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
