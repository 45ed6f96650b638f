// npm runs this when the package is installed. If a prebuilt addon fits this machine, there is
// nothing to do; else it compiles one. On other systems than Linux it does nothing, and a program
// gets an error when it asks for CPUs. With npm_config_build_from_source=true in the environment it
// always compiles. Then it keeps compiled JavaScript, with which programs start sooner.
import { existsSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { BUILD_PACKAGES, compileAddon } from './addon.mjs';
import { compileCode } from './compile-code.mjs';
import { aptCommand, fail, missing, root, run, say } from './steps.mjs';

/** Why the addon must be compiled; undefined if there is one that loads. */
function reasonToCompile() {
  const option = process.env.npm_config_build_from_source;
  if (option === 'true' || option === 'numalign') return 'asked to build from source';
  const load = createRequire(import.meta.url)('node-gyp-build');
  let path;
  try {
    path = load.path(root);
  } catch {
    const { platform, arch, version, report } = process;
    const libc = report.getReport().header.glibcVersionRuntime ? 'glibc' : 'without glibc';
    return `there is no prebuilt addon for ${platform} ${arch} (${libc}), Node ${version}`;
  }
  try {
    load(root);
    return undefined;
  } catch ({ message }) {
    const build = join(root, 'build');
    if (!existsSync(build)) return `${path} does not load here (${message})`;
    // Compiled for another machine; a prebuilt addon may fit.
    rmSync(build, { recursive: true });
    return reasonToCompile();
  }
}

// In the package, binding.gyp is in the archive of the sources: where it lies beside package.json, npm
// lists the package in its reviews with the script `node-gyp rebuild`, which it does not run.
function compile() {
  const isPacked = !existsSync(join(root, 'binding.gyp'));
  if (isPacked) run('tar', ['-xzf', 'native.tar.gz']);
  compileAddon();
  if (isPacked) rmSync(join(root, 'binding.gyp'));
}

const isLinux = process.platform === 'linux';
if (!isLinux)
  say(
    `nothing to install: ${process.platform} has no system calls to reserve CPUs; optional grants are empty`,
  );
const reason = isLinux && reasonToCompile();
if (reason) {
  const needed = missing(BUILD_PACKAGES);
  if (needed.length > 0) {
    fail(
      `${reason}, and to compile it these are missing: ${needed.join(', ')}. Please install them, as root: ${aptCommand(needed)} ` +
        '(elsewhere: a C++20 compiler, make, Python 3, pkg-config, hwloc 2.8 or newer with headers), then install numalign again.',
    );
  }
  say(`${reason}; compiling it takes a minute or two`);
  compile();
  say('compiled');
}
if (isLinux) compileCode();
