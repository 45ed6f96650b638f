// How the addon is compiled: for a clone by setup.mjs, for who installs the package by install.mjs,
// for the package by prebuild.mjs.
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, realpathSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fail, root, run, works } from './steps.mjs';

/** What the compiler needs of the system, by the names of Debian's packages. */
export const BUILD_PACKAGES = [
  { name: 'g++', present: () => works('g++', ['--version']) },
  { name: 'make', present: () => works('make', ['--version']) },
  { name: 'python3', present: () => works('python3', ['--version']) },
  { name: 'pkg-config', present: () => works('pkg-config', ['--version']) },
  { name: 'libhwloc-dev', present: () => works('sh', [join(root, 'scripts/hwloc-flags.sh'), '--libs']) },
];

const sources = readFileSync(join(root, 'native/sources.txt'), 'utf8').split('\n').filter(Boolean);
/** Files and folders that the addon is made of. */
export const ADDON_INPUTS = [
  ...['binding.gyp', 'native/sources.txt', 'scripts/hwloc-flags.sh'],
  ...new Set(sources.map((source) => `native/${source.split('/')[0]}`)),
];

/**
 * npm's own node-gyp, which builds without a network where Node's headers are installed. Whoever
 * runs this need not be npm.
 */
export function nodeGyp() {
  const onPath = spawnSync('sh', ['-c', 'command -v npm'], { encoding: 'utf8' }).stdout.trim();
  const besideNpm = [process.env.npm_execpath, onPath].flatMap((npm) =>
    npm && existsSync(npm)
      ? join(dirname(realpathSync(npm)), '../node_modules/node-gyp/bin/node-gyp.js')
      : [],
  );
  const candidates = [process.env.npm_config_node_gyp, ...besideNpm];
  return (
    candidates.find((path) => path && existsSync(path)) ??
    fail('there is no node-gyp: install npm 9 or newer, from Node')
  );
}

/**
 * Where Node's headers are beside it, as in Debian's and nodesource's packages; else node-gyp
 * downloads them.
 */
export function nodePrefix() {
  const prefix = join(dirname(realpathSync(process.execPath)), '..');
  return existsSync(join(prefix, 'include/node/node_api.h')) ? prefix : undefined;
}

/**
 * Compiles build/Release/numalign.node. `defaults`: of the environment, where that does not say
 * otherwise.
 */
export function compileAddon(defaults = {}) {
  const prefix = nodePrefix();
  const env = { ...(prefix && { npm_config_nodedir: prefix }), ...defaults, ...process.env };
  run(process.execPath, [nodeGyp(), 'configure', 'build', '--jobs', 'max'], { env });
}
