// Finds the addon of a folder of numalign.

// Some bundlers leave require() undefined.
const { existsSync, realpathSync } = process.getBuiltinModule('node:fs');
const { join } = process.getBuiltinModule('node:path');
const Modules = process.getBuiltinModule('node:module') as unknown as {
  new (file: string): { exports: unknown; filename: string; loaded: boolean };
  readonly _cache: Record<string, { exports: unknown } | undefined>;
  createRequire(file: string): NodeJS.Require;
};

/** As node-gyp-build tells it. Node's permission model may hide the file. */
function isMusl(): boolean {
  try {
    return existsSync('/etc/alpine-release');
  } catch {
    return false;
  }
}

/** The addon's file as node-gyp-build finds it, but sooner; undefined if it has another name. */
function addonFile(packageFolder: string): string | undefined {
  const { arch, env, platform } = process;
  if (env.NUMALIGN_PREBUILD !== undefined) return undefined;
  const inPackage = (name: string) => {
    const path = join(packageFolder, name);
    if (Modules._cache[path]) return path;
    return existsSync(path) ? realpathSync.native(path) : undefined;
  };
  const prebuilt = () => {
    const libc = env.LIBC || (isMusl() ? 'musl' : 'glibc');
    return inPackage(`prebuilds/${platform}-${arch}/numalign.${libc}.node`);
  };
  return inPackage('build/Release/numalign.node') ?? prebuilt();
}

/** The addon's exports. @throws what require() throws */
export function loadAddon(packageFolder: string): unknown {
  const file = addonFile(packageFolder);
  const known = file === undefined ? undefined : Modules._cache[file];
  if (known) return known.exports;
  // Finds what numalign depends on, whichever package asks.
  const require = Modules.createRequire(join(packageFolder, 'package.json'));
  return file === undefined ? require('node-gyp-build')(packageFolder) : require(file);
}

/** The same as Node loads it, without what Node looks for first; undefined if the package has none. */
export function openAddon(packageFolder: string): unknown {
  const file = addonFile(packageFolder);
  if (file === undefined) return undefined;
  const known = Modules._cache[file];
  if (known) return known.exports;
  const module = Object.assign(new Modules(file), { filename: file });
  process.dlopen(module, file);
  module.loaded = true;
  Modules._cache[file] = module;
  return module.exports;
}
