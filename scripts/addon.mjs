// How the addon is compiled: by setup.mjs for a clone, by install.mjs when the package is
// installed, by prebuild.mjs for the package.
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, realpathSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fail, root, run, works } from './steps.mjs';

/** What the compiler needs, by the names of Debian's packages. */
export const BUILD_PACKAGES = [
  { name: 'g++', present: () => works('g++', ['--version']) },
  { name: 'make', present: () => works('make', ['--version']) },
  { name: 'python3', present: () => works('python3', ['--version']) },
  { name: 'pkg-config', present: () => works('pkg-config', ['--version']) },
  { name: 'libhwloc-dev', present: () => works('sh', [join(root, 'scripts/hwloc-flags.sh'), '--libs']) },
];

/** Files and folders that the addon is built from. */
export function addonInputs() {
  const sources = readFileSync(join(root, 'native/sources.txt'), 'utf8').split('\n').filter(Boolean);
  return [
    ...['binding.gyp', 'native/sources.txt', 'scripts/hwloc-flags.sh'],
    ...new Set(sources.map((source) => `native/${source.split('/')[0]}`)),
  ];
}

/**
 * npm's own node-gyp, which builds without a network if Node's headers are installed. It is found
 * even if npm does not run this script.
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
 * The prefix with Node's headers, as in Debian's and nodesource's packages; otherwise node-gyp
 * downloads them.
 */
export function nodePrefix() {
  const prefix = join(dirname(realpathSync(process.execPath)), '..');
  return existsSync(join(prefix, 'include/node/node_api.h')) ? prefix : undefined;
}

/**
 * Compiles build/Release/numalign.node. `defaults`: variables to set unless the environment has
 * them.
 */
export function compileAddon(defaults = {}) {
  // The package has its sources in one file.
  if (!existsSync(join(root, 'native'))) run('tar', ['-xzf', 'native.tar.gz']);
  const prefix = nodePrefix();
  const env = { ...(prefix && { npm_config_nodedir: prefix }), ...defaults, ...process.env };
  run(process.execPath, [nodeGyp(), 'configure', 'build', '--jobs', 'max'], { env });
}
