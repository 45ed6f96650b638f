// The modules of a package, also of an older build.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

/** Loads modules by their names in lib, such as `state/ledger`: all from what is built for tests. */
export function modulesOf(folder) {
  const builds = [join(folder, 'dist-test/lib'), join(folder, 'dist')];
  const build = builds.find((path) => existsSync(path));
  return (name) => import(pathToFileURL(join(build, `${name}.js`)));
}
