// Prepares a fresh clone: system packages, node modules, the addon, the JavaScript. Each step is
// skipped if there is nothing to do, and says what it does if it takes long.
//
//   node scripts/setup.mjs
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { ADDON_INPUTS, BUILD_PACKAGES, compileAddon } from './addon.mjs';
import { aptCommand, fail, installPackages, root, run, step, works } from './steps.mjs';

function nodeModules() {
  step(
    'modules',
    ['package-lock.json'],
    ['node_modules/.package-lock.json'],
    'installing node modules',
    () => {
      run('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund']);
    },
  );
}

function addon() {
  const inputs = [...ADDON_INPUTS, 'node_modules/node-addon-api/package.json'];
  step('addon', inputs, ['build/Release/numalign.node'], 'compiling the addon', () => {
    compileAddon(works('ccache', ['--version']) ? { CXX: 'ccache g++' } : {});
  });
}

function javascript() {
  const inputs = ['lib', 'rolldown.config.mjs', 'tsconfig.json', 'tsconfig.build.json'];
  step('typescript', inputs, ['dist/index.js', 'dist/index.d.ts'], 'compiling TypeScript', () => {
    rmSync(join(root, 'dist'), { recursive: true, force: true });
    run(process.execPath, [join(root, 'node_modules/rolldown/bin/cli.mjs'), '-c']);
    run(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), '-p', 'tsconfig.build.json']);
  });
}

function kubernetesPackage() {
  const folder = 'packages/kubernetes';
  const inputs = [`${folder}/lib`, `${folder}/tsconfig.build.json`, 'tsconfig.json', 'lib/index.ts'];
  step('kubernetes', inputs, [`${folder}/dist/index.js`], 'compiling @numalign/kubernetes', () => {
    rmSync(join(root, folder, 'dist'), { recursive: true, force: true });
    const tsc = join(root, 'node_modules/typescript/bin/tsc');
    run(process.execPath, [tsc, '-p', `${folder}/tsconfig.build.json`]);
  });
}

if (process.platform !== 'linux') fail(`numalign runs on Linux only, not on ${process.platform}`);
const [major, minor] = process.versions.node.split('.').map(Number);
const isOld = major < 20 || (major === 20 && minor < 19) || (major === 22 && minor < 12);
if (isOld || major === 21) fail(`Node 20.19, 22.12 or newer is needed, this is ${process.version}`);
const needed = installPackages(BUILD_PACKAGES);
if (needed.length > 0) fail(`please install what is missing, as root: ${aptCommand(needed)}`);
nodeModules();
addon();
javascript();
kubernetesPackage();
