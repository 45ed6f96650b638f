// Prepares a fresh clone: system packages, node modules, the addon, the JavaScript. Each step is
// skipped if there is nothing to do, and says what it does if it takes long.
//
//   node scripts/setup.mjs
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { addonInputs, BUILD_PACKAGES, compileAddon } from './addon.mjs';
import { compileCode } from './compile-code.mjs';
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
  const inputs = [...addonInputs(), 'node_modules/node-addon-api/package.json'];
  step('addon', inputs, ['build/Release/numalign.node'], 'compiling the addon', () => {
    compileAddon(works('ccache', ['--version']) ? { CXX: 'ccache g++' } : {});
  });
}

const TSC = ['typescript/bin/tsc', '-p'];
const ROLLDOWN = ['rolldown/bin/cli.mjs', '-c'];

const program = (name) => join(root, 'node_modules', name);

function javascript() {
  const inputs = [
    ...['lib', 'packages/claims/lib', 'packages/metrics/lib', 'packages/page/lib', 'packages/cli/lib'],
    ...[
      'rolldown.config.mjs',
      'scripts/bundles.mjs',
      'scripts/error-facts.mjs',
      'rolldown.types.config.mjs',
      'scripts/hidden-types.mjs',
      'tsconfig.json',
      'tsconfig.build.json',
    ],
  ];
  const outputs = ['dist/index.js', 'dist/index.d.ts', 'dist-test/lib/index.js'];
  step('typescript', inputs, outputs, 'compiling TypeScript', () => {
    for (const folder of ['dist', 'dist-test/lib'])
      rmSync(join(root, folder), { recursive: true, force: true });
    run(process.execPath, [program(ROLLDOWN[0]), '-c']);
    run(process.execPath, [program(TSC[0]), '-p', 'tsconfig.build.json']);
    run(process.execPath, [program(ROLLDOWN[0]), '-c', 'rolldown.types.config.mjs']);
  });
}

function compiledCode(folder, entry) {
  const inputs = [join(folder, 'dist', entry), 'dist/compiled-code.cjs'];
  const scripts = ['scripts/compile-code.mjs'];
  step(
    `compiled-${entry}`,
    [...inputs, ...scripts],
    [join(folder, 'compiled')],
    'keeping compiled code',
    () => compileCode(join(root, folder)),
  );
}

/** Compiles a package of packages/ by what its folder configures. */
function packageOf(name, output, configuration, [tool, ...args]) {
  const folder = `packages/${name}`;
  // Its types may come from numalign's.
  const inputs = [
    `${folder}/lib`,
    `${folder}/${configuration}`,
    'tsconfig.json',
    'lib/index.ts',
    'lib/compiled-code.ts',
    'lib/base/load-addon.ts',
    'lib/entries',
    'packages/claims/lib',
    'packages/page/lib',
    'scripts/bundles.mjs',
  ];
  step(name, inputs, [`${folder}/${output}`], `compiling @numalign/${name}`, () => {
    rmSync(join(root, folder, 'dist'), { recursive: true, force: true });
    run(process.execPath, [program(tool), ...args, configuration], { cwd: join(root, folder) });
  });
}

function manPages() {
  const inputs = ['packages/cli/lib', 'packages/cli/package.json', 'scripts/man.mjs', 'scripts/reference'];
  step('man', inputs, ['packages/cli/dist/man/numalign.1'], 'writing man pages', () => {
    run(process.execPath, ['scripts/man.mjs']);
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
compiledCode('.', 'index.cjs');
packageOf('metrics', 'dist/index.js', 'tsconfig.build.json', TSC);
packageOf('page', 'dist/index.js', 'tsconfig.build.json', TSC);
packageOf('claims', 'dist/index.js', 'tsconfig.build.json', TSC);
packageOf('cli', 'dist/main.cjs', 'rolldown.config.mjs', ROLLDOWN);
compiledCode('packages/cli', 'program.cjs');
manPages();
packageOf('kubernetes', 'dist/index.js', 'tsconfig.build.json', TSC);
