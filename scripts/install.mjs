// What npm runs where the package is installed: nothing to do where a prebuilt addon fits this machine, else it compiles one.
//
//   npm install numalign --build-from-source    compiles in any case
import { createRequire } from 'node:module';
import { BUILD_PACKAGES, compileAddon } from './addon.mjs';
import { aptCommand, fail, missing, root, say } from './steps.mjs';

/** Why the addon has to be compiled; undefined where one is there that loads. */
function reasonToCompile() {
  const asked = process.env.npm_config_build_from_source;
  if (asked === 'true' || asked === 'numalign') return 'asked to build from source';
  try {
    createRequire(import.meta.url)('node-gyp-build')(root);
    return undefined;
  } catch (error) {
    const platform = `${process.platform} ${process.arch}, Node ${process.version}`;
    return error.code === 'ERR_DLOPEN_FAILED'
      ? `the prebuilt addon does not load here (${error.message})`
      : `there is no prebuilt addon for ${platform}`;
  }
}

const reason = reasonToCompile();
if (reason) {
  const needed = missing(BUILD_PACKAGES);
  if (needed.length > 0) {
    fail(
      `${reason}, and to compile it these are missing: ${needed.join(', ')}. Please install them, as root: ${aptCommand(needed)} ` +
        '(elsewhere: a C++20 compiler, make, Python 3, pkg-config, hwloc 2.8 or newer with headers), then install numalign again.',
    );
  }
  say(`${reason}; compiling it takes a minute or two`);
  compileAddon();
  say('compiled');
}
