// Code that V8 compiled when the package was installed: reading that takes a third of the time that
// compiling does. It is trusted as the code itself is. Without it, or where anything is unusual, Node
// loads the modules as it loads all others.
import type { Stats } from 'node:fs';
import type { Module } from 'node:module';
import type { Script } from 'node:vm';

const { isAscii } = process.getBuiltinModule('node:buffer');
const { closeSync, constants, fstatSync, openSync, readFileSync, readSync, statSync } =
  process.getBuiltinModule('node:fs');
const { basename, dirname, join } = process.getBuiltinModule('node:path');
const { crc32 } = process.getBuiltinModule('node:zlib');
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

const HEAD_BYTES = 8;

/**
 * Checksums of compiled code, and of its source with its path: V8 compares only the length of the
 * source, and stack traces have the path that it was compiled with.
 */
function headOf(code: Uint8Array, file: string, source: Uint8Array): Buffer {
  const head = Buffer.alloc(HEAD_BYTES);
  head.writeUInt32LE(crc32(code), 0);
  head.writeUInt32LE(crc32(source, crc32(file)), 4);
  return head;
}

/** A file of compiled code. `file`: the path of its source. */
export const compiledFile = (code: Uint8Array, file: string, source: Uint8Array): Buffer =>
  Buffer.concat([headOf(code, file, source), code]);

// Only root or this user can write to it.
const isTrusted = ({ uid, mode }: Stats) => (uid === 0 || uid === process.geteuid!()) && (mode & 0o022) === 0;

const FLAGS = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/** The compiled code at `path` if it is trusted, and of this source. */
function codeIn(path: string, file: string, source: Uint8Array): Buffer | undefined {
  const fd = openSync(path, FLAGS);
  try {
    const stats = fstatSync(fd);
    if (!stats.isFile() || !isTrusted(stats)) return undefined;
    const bytes = Buffer.allocUnsafe(stats.size);
    if (readSync(fd, bytes) < HEAD_BYTES) return undefined;
    const code = bytes.subarray(HEAD_BYTES);
    return headOf(code, file, source).equals(bytes.subarray(0, HEAD_BYTES)) ? code : undefined;
  } finally {
    closeSync(fd);
  }
}

const trustedFolders = new Set<string>();

/** The compiled code of this source, as of the one in `file`; undefined where there is none. */
function compiledCode(file: string, source: Uint8Array): Buffer | undefined {
  // The folder of this file is dist/.
  const folder = compiledFolder(dirname(import.meta.dirname));
  if (!trustedFolders.has(folder) && !isTrusted(statSync(folder))) return undefined;
  trustedFolders.add(folder);
  return codeIn(join(folder, `${basename(file)}.bin`), file, source);
}

// V8 has options that change its code, so that it rejects all files.
let isRejected = false;

/** The require() of a module: what has been loaded is found without looking for its file. */
function requireOf(file: string): NodeJS.Require {
  const require = Modules.createRequire(file);
  const find = (id: string) => Modules._cache[join(dirname(file), id)]?.exports ?? require(id);
  return Object.assign(find, require);
}

// The function around a module. Strings would be copied once more to join them.
const [PROLOGUE, EPILOGUE] = Modules.wrap('\0')
  .split('\0')
  .map((text) => Buffer.from(text)) as [Buffer, Buffer];

/**
 * Loads a module as require() does.
 * @param cachedData compiled code, which V8 may reject
 * @returns what V8 has compiled, to which functions are added as they are called
 */
export function loadModule(file: string, parent: Module, source: Buffer, cachedData?: Buffer): Script {
  const bytes = Buffer.concat([PROLOGUE, source, EPILOGUE]);
  const script = new vm.Script(bytes.toString(isAscii(bytes) ? 'latin1' : 'utf8'), {
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
      const code = compiledCode(file, source);
      if (code) loadModule(file, parent, source, code);
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
