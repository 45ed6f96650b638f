// npm run prebuild [-- --arch x64,arm64 --libc glibc,musl]: makes
// prebuilds/linux-ARCH/numalign.glibc.node, and numalign.musl.node beside it (see
// prebuild-musl.mjs). The first runs wherever Node's own binaries run: hwloc and the C++ library
// are linked in, and it needs no newer glibc than Node does. That takes an old compiler on an old
// system: the root folder of a Debian 11, which is set up once in ~/.cache/numalign-prebuild (as
// root, 1.5 GB). Other architectures are cross-compiled. `npm pack` runs this.
//
//   DEBIAN_MIRROR    where Debian 11 is, if it has moved
//   HWLOC_ARCHIVE    the archive of hwloc's source, if apt has another version
import { copyFileSync, cpSync, existsSync, mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import { parseArgs } from 'node:util';
import { addonInputs, nodeGyp, nodePrefix } from './addon.mjs';
import { PREBUILD_SYSTEM } from './cache-folder.mjs';
import { checkMusl, prebuildMusl } from './prebuild-musl.mjs';
import { cached, checkAddon, fileOf, HWLOC, megabytes, publish, unpackHwloc } from './prebuild-parts.mjs';
import { aptCommand, fail, installPackages, root, run, say, step, works } from './steps.mjs';

/** The version that Node 20 needs; see its BUILDING.md. */
const GLIBC = '2.28';
/** Libraries of glibc. Any other library may be missing. */
const LIBRARIES = /^(lib(c|m|dl|pthread|rt)|ld-linux-[\w-]+)\.so\.\d+$/;
/** Keyed by Node's name of the architecture. */
const TARGETS = {
  x64: { triple: 'x86_64-linux-gnu' },
  arm64: { triple: 'aarch64-linux-gnu' },
};

const SBIN = { ...process.env, PATH: `${process.env.PATH}:/usr/sbin:/sbin` };
const BZIP2 = { name: 'bzip2', present: () => works('bzip2', ['--version']) };
const GLIBC_PACKAGES = [
  BZIP2,
  { name: 'debootstrap', present: () => existsSync('/usr/sbin/debootstrap') },
  {
    name: 'debian-archive-keyring',
    present: () => existsSync('/usr/share/keyrings/debian-archive-keyring.gpg'),
  },
];
const MUSL_PACKAGES = [BZIP2, { name: 'musl-tools', present: () => works('musl-gcc', ['--version']) }];

function oldSystem() {
  const suite = basename(PREBUILD_SYSTEM);
  const across = Object.keys(TARGETS).filter((arch) => arch !== process.arch);
  const compilers = ['g++', ...across.map((arch) => `g++-${TARGETS[arch].triple.replace('_', '-')}`)];
  const packages = [...compilers, 'make', 'pkg-config', 'python3'];
  cached(PREBUILD_SYSTEM, `setting up a Debian 11 (${suite}) to compile in`, (temporary) => {
    const made = join(temporary, suite);
    const options = ['--variant=minbase', '--force-check-gpg', `--include=${packages.join(',')}`];
    const { DEBIAN_MIRROR } = process.env;
    run('debootstrap', [...options, suite, made, ...(DEBIAN_MIRROR ? [DEBIAN_MIRROR] : [])], { env: SBIN });
    run('chroot', [made, 'apt-get', 'clean'], { env: SBIN });
    return made;
  });
}

const { packages: LOCKED } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'));

/** The folder of a package, and those of the packages that it needs. */
function withDependencies(path) {
  const places = Object.keys(LOCKED[path].dependencies ?? {}).map((name) =>
    [`${path}/node_modules/${name}`, `node_modules/${name}`].find((place) => place in LOCKED),
  );
  return [path, ...places.flatMap(withDependencies)];
}

function prebuild(arch) {
  const { triple } = TARGETS[arch];
  const prefix =
    nodePrefix() ?? fail(`Node's headers are not beside ${process.execPath}: use a Node that brings them`);
  // node-gyp with its dependencies, in npm's own node_modules.
  const [npm, gyp] = nodeGyp().split(/\/node_modules(?=\/node-gyp\/)/);
  if (gyp === undefined) fail(`${nodeGyp()} is not npm's own node-gyp: use the npm that comes with Node`);
  const folder = mkdtempSync(join(PREBUILD_SYSTEM, 'prebuild-'));
  const inside = `/${basename(folder)}`;
  // Takes nothing from the caller's environment, and only the named npm settings.
  const env = {
    ...{ PATH: `${inside}/node:/usr/sbin:/usr/bin:/sbin:/bin`, HOME: inside, LC_ALL: 'C.UTF-8' },
    ...{ CC: `${triple}-gcc`, CXX: `${triple}-g++`, LDFLAGS: '-static-libstdc++ -static-libgcc' },
    ...{ HWLOC_PREFIX: `${inside}/hwloc`, npm_config_nodedir: `${inside}/node`, npm_config_jobs: 'max' },
    ...{ PREBUILD_NODE_GYP: `${inside}/npm/node_modules${gyp}`, PREBUILD_STRIP_BIN: `${triple}-strip` },
  };
  const runInside = (command) =>
    run('chroot', [PREBUILD_SYSTEM, 'sh', '-ec', `cd ${inside}; ${command}`], { env });
  try {
    unpackHwloc(folder);
    for (const path of [
      ...addonInputs(),
      'scripts/hwloc-static.sh',
      'package.json',
      ...['node_modules/node-addon-api', 'node_modules/prebuildify'].flatMap(withDependencies),
    ]) {
      cpSync(join(root, path), join(folder, path), { recursive: true, dereference: true });
    }
    cpSync(join(prefix, 'include/node'), join(folder, 'node/include/node'), { recursive: true });
    copyFileSync(realpathSync(process.execPath), join(folder, 'node/node'));
    cpSync(`${npm}/node_modules`, join(folder, 'npm/node_modules'), { recursive: true });
    // Debian's own Node, for example, needs more than a Debian 11 has.
    runInside('node --version');
    const source = `../hwloc-${HWLOC.version}`;
    runInside(
      `mkdir hwloc-build; cd hwloc-build; sh ../scripts/hwloc-static.sh ${source} $HWLOC_PREFIX ${triple}`,
    );
    const flags = `--napi --strip --tag-libc --name numalign --arch ${arch} --target ${process.version}`;
    runInside(`node node_modules/prebuildify/bin.js ${flags}`);
    const built = join(folder, fileOf(arch, 'glibc'));
    check(built, arch);
    publish(built, arch, 'glibc');
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const newer = (a, b) => a.localeCompare(b, 'en', { numeric: true }) > 0;

/** Fails if the addon needs more than is promised. */
function check(file, arch) {
  const symbols = checkAddon(file, arch, LIBRARIES);
  const versions = [...symbols.matchAll(/@GLIBC_([\w.]+)/g)].map(([, version]) => version);
  const floor = versions.reduce((a, b) => (newer(a, b) ? a : b), '0');
  if (floor === '0' || newer(floor, GLIBC)) fail(`${file} needs glibc ${floor}, which is more than ${GLIBC}`);
  return `needs glibc ${floor} and nothing else`;
}

function setUp(packages) {
  const needed = installPackages(packages);
  if (needed.length > 0) fail(`please install what is missing, as root: ${aptCommand(needed)}`);
}

const LIBRARIES_OF_C = ['glibc', 'musl'];
const { values } = parseArgs({
  options: {
    arch: { type: 'string', default: Object.keys(TARGETS).join() },
    libc: { type: 'string', default: LIBRARIES_OF_C.join() },
  },
});

/** The values that an option lists, checked. */
function listed(name, valid) {
  const list = values[name].split(',');
  const unknown = list.filter((each) => !valid.includes(each));
  if (unknown.length > 0) fail(`--${name} ${unknown.join()}: valid are ${valid.join(', ')}`);
  return list;
}

const archs = listed('arch', Object.keys(TARGETS));
const libcs = listed('libc', LIBRARIES_OF_C);
for (const arch of archs) {
  const scripts = ['addon.mjs', 'hwloc-static.sh', 'prebuild-parts.mjs'];
  const inputs = [
    ...addonInputs(),
    ...scripts.map((name) => `scripts/${name}`),
    'node_modules/node-addon-api/package.json',
  ];
  const make = (libc, more, action, checkFile) => {
    if (!libcs.includes(libc)) return;
    const file = fileOf(arch, libc);
    step(`prebuild-${arch}-${libc}`, [...inputs, ...more], [file], `compiling ${file}`, action);
    say(`${file}: ${megabytes(join(root, file))}, ${checkFile(join(root, file), arch)}`);
  };
  make(
    'glibc',
    ['scripts/prebuild.mjs', 'node_modules/prebuildify/package.json'],
    () => {
      if (process.getuid() !== 0 || !works('apt-get', ['--version'])) {
        fail(
          'addons for glibc must be made by root on a Debian. CONTRIBUTING.md says how to pack without them',
        );
      }
      setUp(GLIBC_PACKAGES);
      oldSystem();
      prebuild(arch);
    },
    check,
  );
  const musl = () => {
    setUp(MUSL_PACKAGES);
    prebuildMusl(arch);
  };
  make('musl', ['scripts/prebuild-musl.mjs'], musl, checkMusl);
}
