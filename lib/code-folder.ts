// Where compiled code is (compiled-code.ts), and when it is not to be loaded. Entries that are imported have
// this too (import-entry.ts).
import type { Module } from 'node:module';
import { openAddon } from './base/load-addon.js';
import type { NativeCode } from './base/native-files.js';

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
export const Modules = process.getBuiltinModule('node:module') as unknown as ModuleClass;

/** The function around a module. */
export const [PROLOGUE, EPILOGUE] = Modules.wrap('\0').split('\0') as [string, string];

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
    nodeSize ??= process.getBuiltinModule('node:fs').statSync(process.execPath).size;
    const { version, arch } = process;
    last = { loaders, node: `${version}-${arch}-${nodeSize}-${loaders.join('').length}` };
  }
  return `${packageFolder}/compiled/${last.node}`;
}

/** Whether something else may want to see this code loaded or run, or is to run it. */
export function isUnusual(): boolean {
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

/** The addon of a package: it reads modules sooner than Node does. @throws if there is none */
export function addonIn(packageFolder: string): NativeCode {
  const addon = openAddon(packageFolder || '/') as NativeCode | undefined;
  if (!addon) throw new Error('there is no addon');
  return addon;
}
