// Finds the addon of a folder of numalign.
import { join } from 'node:path';

const { existsSync } = process.getBuiltinModule('node:fs');

/**
 * The addon's exports. `require`: of a module that finds what numalign depends on.
 * @throws what require() throws
 */
export function loadAddon(packageFolder: string, require: NodeJS.Require): unknown {
  // The path that node-gyp-build finds first, without the time to load node-gyp-build.
  const compiled = join(packageFolder, 'build/Release/numalign.node');
  return existsSync(compiled) ? require(compiled) : require('node-gyp-build')(packageFolder);
}
