// Finds the addon of a folder of numalign.

// Some bundlers leave require() undefined.
const { existsSync } = process.getBuiltinModule('node:fs');
const { createRequire } = process.getBuiltinModule('node:module');
const { join } = process.getBuiltinModule('node:path');

/** The addon's exports. @throws what require() throws */
export function loadAddon(packageFolder: string): unknown {
  // Finds what numalign depends on, whichever package asks.
  const require = createRequire(join(packageFolder, 'package.json'));
  // The path that node-gyp-build finds first, without the time to load node-gyp-build.
  const compiled = join(packageFolder, 'build/Release/numalign.node');
  return existsSync(compiled) ? require(compiled) : require('node-gyp-build')(packageFolder);
}
