// Code that V8 compiled when the package was installed: reading that takes a third of the time that
// compiling does. It is trusted as the code itself is. Without it, or where anything is unusual, Node
// loads the modules as it loads all others.
import type { Stats } from 'node:fs';
import type { Module } from 'node:module';
import type { Script } from 'node:vm';
import { loadAddon } from './base/load-addon.js';
import type { Native } from './base/native-surface.js';

const { isAscii } = process.getBuiltinModule('node:buffer');
const { closeSync, constants, existsSync, fstatSync, openSync, readFileSync, readSync, statSync } =
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

const wrapped = (source: Uint8Array) => Buffer.concat([Buffer.from(PROLOGUE), source, Buffer.from(EPILOGUE)]);

// A checksum of all that follows, and how long the code and the wrapped source are. V8 would copy code
// that does not begin at a multiple of 8.
const HEAD_BYTES = 16;

let addon: Pick<Native, 'fingerprint'> | undefined;

/** As the addon makes it: that of `node:zlib` would load all streams of Node. */
function checksumOf(bytes: Buffer): number {
  if (!addon) {
    const require = Modules.createRequire(import.meta.filename);
    const own = dirname(import.meta.dirname);
    // Another package has none of its own.
    const folder = existsSync(join(own, 'build')) ? own : dirname(require.resolve('numalign/package.json'));
    addon = loadAddon(folder, require) as typeof addon;
  }
  return addon!.fingerprint(bytes.subarray(4));
}

/**
 * A file of compiled code. It has its source, and the path of that: V8 compares only the length of the
 * source, and stack traces have the path that it was compiled with.
 */
export function compiledFile(code: Buffer, file: string, source: Uint8Array): Buffer {
  const text = wrapped(source);
  const bytes = Buffer.concat([Buffer.alloc(HEAD_BYTES), code, text, Buffer.from(file)]);
  bytes.writeUInt32LE(code.length, 4);
  bytes.writeUInt32LE(text.length, 8);
  bytes.writeUInt32LE(checksumOf(bytes), 0);
  return bytes;
}

/** A wrapped source, and what V8 has compiled of it. */
interface Compiled {
  readonly text: Buffer;
  readonly code?: Buffer;
}

/** What {@link compiledFile} has made of this source; undefined for anything else. */
function compiledIn(bytes: Buffer, file: string, source: Uint8Array): Compiled | undefined {
  if (bytes.length < HEAD_BYTES || bytes.readUInt32LE(0) !== checksumOf(bytes)) return undefined;
  const textAt = HEAD_BYTES + bytes.readUInt32LE(4);
  const fileAt = textAt + bytes.readUInt32LE(8);
  const text = bytes.subarray(textAt, fileAt);
  const isOfSource =
    bytes.toString('utf8', fileAt) === file &&
    text.subarray(PROLOGUE.length, -EPILOGUE.length).equals(source);
  return isOfSource ? { text, code: bytes.subarray(HEAD_BYTES, textAt) } : undefined;
}

// Only root or this user can write to it.
const isTrusted = ({ uid, mode }: Stats) => (uid === 0 || uid === process.geteuid!()) && (mode & 0o022) === 0;

const FLAGS = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/** The compiled code at `path` if it is trusted, and of this source. */
function compiledAt(path: string, file: string, source: Uint8Array): Compiled | undefined {
  const fd = openSync(path, FLAGS);
  try {
    const stats = fstatSync(fd);
    if (!stats.isFile() || !isTrusted(stats)) return undefined;
    const bytes = Buffer.allocUnsafeSlow(stats.size);
    return compiledIn(bytes.subarray(0, readSync(fd, bytes)), file, source);
  } finally {
    closeSync(fd);
  }
}

const trustedFolders = new Set<string>();

/** The compiled code of this source, as of the one in `file`; undefined where there is none. */
function compiledOf(file: string, source: Uint8Array): Compiled | undefined {
  // The folder of this file is dist/.
  const folder = compiledFolder(dirname(import.meta.dirname));
  if (!trustedFolders.has(folder) && !isTrusted(statSync(folder))) return undefined;
  trustedFolders.add(folder);
  return compiledAt(join(folder, `${basename(file)}.bin`), file, source);
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
 * @returns what V8 has compiled, to which functions are added as they are called. It may reject code.
 */
export function loadModule(file: string, parent: Module, source: Buffer, compiled?: Compiled): Script {
  const { text, code: cachedData } = compiled ?? { text: wrapped(source) };
  const script = new vm.Script(text.toString(isAscii(text) ? 'latin1' : 'utf8'), {
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
  try {
    if (!isOfNode(parent)) return;
    for (const path of paths) {
      const file = join(dirname(parent.filename), path);
      if (isRejected || Modules._cache[file]) continue;
      const source = readFileSync(file);
      const compiled = compiledOf(file, source);
      if (compiled) loadModule(file, parent, source, compiled);
    }
  } catch {
    // There is none, mostly.
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
    const source = fd === undefined ? undefined : unlessThrown(() => readFileSync(fd));
    if (!source) return parent.require(path);
    closeSync(fd!);
    loadModule(file, parent, source, isRejected ? undefined : unlessThrown(() => compiledOf(file, source)));
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
