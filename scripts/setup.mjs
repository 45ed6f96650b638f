// Makes a fresh clone ready: system packages, node modules, the addon, the JavaScript. Each step is skipped where nothing is to do and says
// what it does where it takes long.
//
//   node scripts/setup.mjs          what `npm start` needs
//   node scripts/setup.mjs --test   what `npm test` needs as well
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, realpathSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const forTests = process.argv.includes('--test');

function fail(message) {
  console.error(`setup: ${message}`);
  process.exit(1);
}

function say(message) {
  console.error(`setup: ${message}`);
}

// Runs a command; its output is shown only where it fails.
function run(command, args, options = {}) {
  const result = spawnSync(command, args, { cwd: root, encoding: 'utf8', maxBuffer: 1 << 28, ...options });
  if (result.status === 0) return;
  process.stderr.write(`${result.stdout ?? ''}${result.stderr ?? ''}`);
  fail(`\`${[command, ...args].join(' ')}\` failed${result.error ? `: ${result.error.message}` : ''}`);
}

const works = (command, args) => spawnSync(command, args, { stdio: 'ignore' }).status === 0;

// ---- stamps: what a step was last done for

const stamps = join(root, '.cache/setup');
const stampFile = (name) => join(stamps, name);

function hashOf(paths) {
  const hash = createHash('sha256').update(process.version);
  const add = (path) => {
    if (statSync(path).isDirectory()) for (const name of readdirSync(path).sort()) add(join(path, name));
    else hash.update(path.slice(root.length)).update(readFileSync(path));
  };
  for (const path of paths) add(join(root, path));
  return hash.digest('hex');
}

function step(name, inputs, outputs, message, action) {
  const hash = hashOf(inputs);
  const done = existsSync(stampFile(name)) && readFileSync(stampFile(name), 'utf8') === hash;
  if (done && outputs.every((output) => existsSync(join(root, output)))) return;
  const begin = Date.now();
  say(message);
  action();
  mkdirSync(stamps, { recursive: true });
  writeFileSync(stampFile(name), hash);
  say(`done in ${((Date.now() - begin) / 1000).toFixed(1)} s`);
}

// ---- steps

const BUILD_PACKAGES = [
  { name: 'g++', present: () => works('g++', ['--version']) },
  { name: 'make', present: () => works('make', ['--version']) },
  { name: 'python3', present: () => works('python3', ['--version']) },
  { name: 'pkg-config', present: () => works('pkg-config', ['--version']) },
  { name: 'libhwloc-dev', present: () => works('pkg-config', ['--exists', 'hwloc >= 2.8']) },
];
const TEST_PACKAGES = [
  { name: 'cmake', present: () => works('cmake', ['--version']) },
  { name: 'libgtest-dev', present: () => existsSync('/usr/include/gtest/gtest.h') },
];

/** Answers whether all are there in the end; where they are not wanted at any price, that is not an error. */
function systemPackages(packages, required) {
  const missing = packages.filter((item) => !item.present()).map((item) => item.name);
  if (missing.length === 0) return true;
  const command = `apt-get install --no-install-recommends ${missing.join(' ')}`;
  if (process.getuid() !== 0 || !works('apt-get', ['--version'])) {
    if (required) fail(`please install what is missing, as root: ${command}`);
    say(`some tests will be left out; for them, as root: ${command}`);
    return false;
  }
  say(`installing system packages: ${missing.join(' ')}`);
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  const install = ['install', '-y', '-q', '--no-install-recommends', ...missing];
  if (spawnSync('apt-get', install, { env, stdio: 'ignore' }).status !== 0) {
    // The package lists of a fresh machine are empty or old.
    run('apt-get', ['update', '-q'], { env });
    run('apt-get', install, { env });
  }
  return true;
}

function nodeModules() {
  step('modules', ['package-lock.json'], ['node_modules/.package-lock.json'], 'installing node modules', () => {
    run('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund']);
  });
}

// npm's own node-gyp, which builds without a network where Node's headers are installed.
function nodeGyp() {
  const npm = process.env.npm_execpath ?? spawnSync('sh', ['-c', 'command -v npm'], { encoding: 'utf8' }).stdout.trim();
  const candidates = [
    process.env.npm_config_node_gyp,
    npm && join(dirname(realpathSync(npm)), '../node_modules/node-gyp/bin/node-gyp.js'),
  ];
  return (
    candidates.find((path) => path && existsSync(path)) ??
    fail('npm has no node-gyp of its own: install npm 9 or newer')
  );
}

// Without Node's headers beside it node-gyp downloads them; Debian's and nodesource's packages bring them along.
function gypEnvironment() {
  const prefix = join(dirname(realpathSync(process.execPath)), '..');
  const hasHeaders = existsSync(join(prefix, 'include/node/node_api.h'));
  return hasHeaders ? { ...process.env, npm_config_nodedir: prefix } : process.env;
}

function addon() {
  const sources = readFileSync(join(root, 'native/sources.txt'), 'utf8').split('\n');
  const folders = [...new Set(sources.filter(Boolean).map((source) => `native/${source.split('/')[0]}`))];
  const nodeAddonApi = 'node_modules/node-addon-api/package.json';
  const inputs = ['binding.gyp', 'native/sources.txt', 'scripts/hwloc-flags.sh', nodeAddonApi, ...folders];
  step('addon', inputs, ['build/Release/numalign.node'], 'compiling the addon', () => {
    run(process.execPath, [nodeGyp(), 'configure', 'build', '--jobs', 'max'], { env: gypEnvironment() });
  });
}

function javascript() {
  const inputs = ['lib', 'rolldown.config.mjs', 'tsconfig.json', 'tsconfig.build.json'];
  step('typescript', inputs, ['dist/index.js', 'dist/index.d.ts'], 'compiling TypeScript', () => {
    run(process.execPath, [join(root, 'node_modules/rolldown/bin/cli.mjs'), '-c']);
    run(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), '-p', 'tsconfig.build.json']);
  });
}

if (process.platform !== 'linux') fail(`numalign runs on Linux only, not on ${process.platform}`);
if (Number(process.versions.node.split('.')[0]) < 20) fail(`Node 20 or newer is needed, this is ${process.version}`);
systemPackages(BUILD_PACKAGES, true);
if (forTests) systemPackages(TEST_PACKAGES, false);
nodeModules();
addon();
javascript();
