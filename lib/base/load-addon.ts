// Finds the addon of a folder of numalign.

// Some bundlers leave require() undefined.
const { existsSync, realpathSync } = process.getBuiltinModule('node:fs');
const { join } = process.getBuiltinModule('node:path');
const Modules = process.getBuiltinModule('node:module') as unknown as {
  new (file: string): { exports: unknown; filename: string; loaded: boolean };
  readonly _cache: Record<string, { exports: unknown } | undefined>;
  createRequire(file: string): NodeJS.Require;
};

/** The addon that was compiled here: the path that node-gyp-build finds first, sooner. */
function compiledAddon(packageFolder: string): string | undefined {
  const path = join(packageFolder, 'build/Release/numalign.node');
  return existsSync(path) ? realpathSync.native(path) : undefined;
}

/** The addon's exports. @throws what require() throws */
export function loadAddon(packageFolder: string): unknown {
  const compiled = compiledAddon(packageFolder);
  const known = compiled === undefined ? undefined : Modules._cache[compiled];
  if (known) return known.exports;
  // Finds what numalign depends on, whichever package asks.
  const require = Modules.createRequire(join(packageFolder, 'package.json'));
  return compiled === undefined ? require('node-gyp-build')(packageFolder) : require(compiled);
}

/** The same as Node does it, without what Node looks for first. */
export function openAddon(packageFolder: string): unknown {
  const compiled = compiledAddon(packageFolder);
  if (compiled === undefined || Modules._cache[compiled]) return loadAddon(packageFolder);
  const module = Object.assign(new Modules(compiled), { filename: compiled });
  process.dlopen(module, compiled);
  module.loaded = true;
  Modules._cache[compiled] = module as NodeJS.Module;
  return module.exports;
}
