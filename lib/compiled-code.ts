// Code that V8 compiled when the package was installed: reading that takes a third of the time that
// compiling does. It is trusted as the code itself is. Without it, or where anything is unusual, Node
// loads the modules as it loads all others.
import type { Stats } from 'node:fs';
import type { Module } from 'node:module';
import type { Script } from 'node:vm';
import { loadAddon } from './base/load-addon.js';
import type { Native } from './base/native-surface.js';

const { isAscii } = process.getBuiltinModule('node:buffer');
const { closeSync, constants, existsSync, fstatSync, openSync, readSync, statSync } =
  process.getBuiltinModule('node:fs');
const { basename, dirname, join } = process.getBuiltinModule('node:path');
const vm = process.getBuiltinModule('node:vm');

type AnyFunction = (...args: any[]) => unknown;
/** What `node:module` has besides its types. */
interface ModuleClass {
  new (file: string, parent: Module): Module;
  readonly _cache: Record<string, Module | undefined>;
  readonly _extensions: Record<string, AnyFunction | undefined>;
  readonly prototype: { readonly _compile: AnyFunction };
  createRequire(file: string): NodeJS.Require;
  wrap(source: string): string;
}
const Modules = process.getBuiltinModule('node:module') as unknown as ModuleClass;

let nodeSize: number | undefined;

/**
 * Where a package keeps what this Node has compiled, if Node itself loads the modules here. V8 does not
 * notice code of another Node with the same V8, and may crash.
 */
export function compiledFolder(packageFolder: string): string {
  const { _extensions, prototype } = Modules;
  nodeSize ??= statSync(process.execPath).size;
  // Tools that look at code replace one of these: theirs has another text, and that another length.
  const loaders = [prototype._compile, _extensions['.js'], _extensions['.cjs']];
  const { version, arch } = process;
  const node = `${version}-${arch}-${nodeSize}`;
  return join(packageFolder, 'compiled', `${node}-${loaders.join('').length}`);
}

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
    /-policy\b/.test([...execArgv, env.NODE_OPTIONS].join(' '))
  );
}

// The function around a module.
const [PROLOGUE, EPILOGUE] = Modules.wrap('\0').split('\0') as [string, string];

// While modules are loaded, one after the other, what is read is read to the same pages: the kernel takes
// longer to clear a new one than it takes to read one.
const HALF_BYTES = 2 ** 20;
let scratch: Buffer | undefined;

/** Half of what is read to: the source, or its code. */
const half = (begin: 0 | typeof HALF_BYTES, size: number) =>
  scratch && size <= HALF_BYTES ? scratch.subarray(begin, begin + size) : Buffer.allocUnsafeSlow(size);

/** The source in this file, in the function. */
export function readSource(fd: number): Buffer {
  const { size } = fstatSync(fd);
  const text = half(0, PROLOGUE.length + size + EPILOGUE.length);
  text.write(PROLOGUE, 'latin1');
  text.write(EPILOGUE, PROLOGUE.length + size, 'latin1');
  if (readSync(fd, text, PROLOGUE.length, size, 0) !== size) throw new Error('the file is being written');
  return text;
}

// Checksums of all that follows, of the source and of its path. V8 would copy code that does not begin at
// a multiple of 8.
const HEAD_BYTES = 16;

let addon: Pick<Native, 'fingerprint'> | undefined;

/** As the addon makes it: that of `node:zlib` would load all streams of Node. */
function checksumOf(bytes: Uint8Array): number {
  if (!addon) {
    const require = Modules.createRequire(import.meta.filename);
    const own = dirname(import.meta.dirname);
    // Another package has none of its own.
    const folder = existsSync(join(own, 'build')) ? own : dirname(require.resolve('numalign/package.json'));
    addon = loadAddon(folder) as typeof addon;
  }
  return addon!.fingerprint(bytes);
}

/**
 * A file of compiled code. V8 compares only the length of the source with that which it has compiled, and
 * stack traces have the path that it was compiled with.
 * @param source as {@link readSource} returns it
 */
export function compiledFile(code: Buffer, file: string, source: Buffer): Buffer {
  const bytes = Buffer.concat([Buffer.alloc(HEAD_BYTES), code]);
  bytes.writeUInt32LE(checksumOf(source), 4);
  bytes.writeUInt32LE(checksumOf(Buffer.from(file)), 8);
  bytes.writeUInt32LE(checksumOf(bytes.subarray(4)), 0);
  return bytes;
}

/** The code in what {@link compiledFile} has made of this source; undefined in anything else. */
function codeIn(bytes: Buffer, file: string, source: Buffer): Buffer | undefined {
  const isOfSource =
    bytes.length >= HEAD_BYTES &&
    bytes.readUInt32LE(0) === checksumOf(bytes.subarray(4)) &&
    bytes.readUInt32LE(4) === checksumOf(source) &&
    bytes.readUInt32LE(8) === checksumOf(Buffer.from(file));
  return isOfSource ? bytes.subarray(HEAD_BYTES) : undefined;
}

// Only root or this user can write to it.
const isTrusted = ({ uid, mode }: Stats) => (uid === 0 || uid === process.geteuid!()) && (mode & 0o022) === 0;

const FLAGS = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/** Opens a file for `read`. */
function reading<T>(path: string, flags: number, read: (fd: number) => T): T {
  const fd = openSync(path, flags);
  try {
    return read(fd);
  } finally {
    closeSync(fd);
  }
}

/** The compiled code at `path` if it is trusted, and of this source. */
const codeAt = (path: string, file: string, source: Buffer) =>
  reading(path, FLAGS, (fd) => {
    const stats = fstatSync(fd);
    if (!stats.isFile() || !isTrusted(stats)) return undefined;
    const bytes = half(HALF_BYTES, stats.size);
    return codeIn(bytes.subarray(0, readSync(fd, bytes)), file, source);
  });

const trustedFolders = new Set<string>();

/** The compiled code of this source, as of the one in `file`; undefined where there is none. */
function compiledCode(file: string, source: Buffer): Buffer | undefined {
  // The folder of this file is dist/.
  const folder = compiledFolder(dirname(import.meta.dirname));
  if (!trustedFolders.has(folder) && !isTrusted(statSync(folder))) return undefined;
  trustedFolders.add(folder);
  return codeAt(join(folder, `${basename(file)}.bin`), file, source);
}

// V8 has options that change its code, so that it rejects all files.
let isRejected = false;

/** The require() of a module: what has been loaded is found without looking for its file. */
function requireOf(file: string): NodeJS.Require {
  const require = Modules.createRequire(file);
  const find = (id: string) => Modules._cache[join(dirname(file), id)]?.exports ?? require(id);
  return Object.assign(find, require);
}

/**
 * Loads a module as require() does.
 * @param source as {@link readSource} returns it
 * @param cachedData compiled code, which V8 may reject
 * @returns what V8 has compiled, to which functions are added as they are called
 */
export function loadModule(file: string, parent: Module, source: Buffer, cachedData?: Buffer): Script {
  const script = new vm.Script(source.toString(isAscii(source) ? 'latin1' : 'utf8'), {
    filename: file,
    // Columns are those of the file.
    columnOffset: -PROLOGUE.length,
    ...(cachedData && { cachedData }),
  });
  isRejected ||= script.cachedDataRejected === true;
  const module = Object.assign(new Modules(file, parent), { filename: file, paths: parent.paths });
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
    scratch ??= Buffer.allocUnsafeSlow(2 * HALF_BYTES);
    for (const path of paths) {
      const file = join(dirname(parent.filename), path);
      if (isRejected || Modules._cache[file]) continue;
      const source = reading(file, constants.O_RDONLY, readSource);
      const code = compiledCode(file, source);
      if (code) loadModule(file, parent, source, code);
    }
  } catch {
    // There is none, mostly.
  } finally {
    if (isOutermost) scratch = undefined;
  }
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
  const file = join(dirname(parent.filename), path);
  const known = lateModules.get(file);
  if (known) return known;
  const fd = isOfNode(parent) ? unlessThrown(() => openSync(file, FLAGS)) : undefined;
  const load = () => {
    const source = fd === undefined ? undefined : unlessThrown(() => readSource(fd));
    if (!source) return parent.require(path);
    closeSync(fd!);
    loadModule(file, parent, source, isRejected ? undefined : unlessThrown(() => compiledCode(file, source)));
    return Modules._cache[file]!.exports;
  };
  let exports: unknown;
  const exported = () => (exports ??= Modules._cache[file]?.exports ?? load());
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
