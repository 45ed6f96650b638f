// npm run prebuild [-- --arch x64,arm64]: prebuilds/linux-ARCH/numalign.glibc.node, for
// wherever Node's own binaries run: hwloc and the C++ library are linked in, and nothing newer is
// asked of glibc than Node asks. That takes an old compiler on an old system: the root folder of a
// Debian 11, which is set up once in ~/.cache/numalign-prebuild (root's rights, 1.5 GB). Another
// architecture's is compiled across. `npm pack` runs this.
//
//   DEBIAN_MIRROR    where Debian 11 is, should it have moved
//   HWLOC_ARCHIVE    the archive of hwloc's source, where apt has another version
import { createHash } from 'node:crypto';
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { basename, join } from 'node:path';
import { parseArgs } from 'node:util';
import { ADDON_INPUTS, nodeGyp, nodePrefix } from './addon.mjs';
import { PREBUILD_CACHE, PREBUILD_SYSTEM } from './cache-folder.mjs';
import { aptCommand, fail, installPackages, root, run, say, step, works } from './steps.mjs';

/** What Node 20 asks for; see its BUILDING.md. */
const GLIBC = '2.28';
/** What glibc itself brings. Any other library might not be there. */
const LIBRARIES = /^(lib(c|m|dl|pthread|rt)|ld-linux-[\w-]+)\.so\.\d+$/;
const EXPORTS = ['napi_register_module_v1', 'node_api_module_get_api_version_v1'];
const HWLOC = {
  version: '2.9.0',
  package: 'hwloc=2.9.0-1',
  archive: 'hwloc_2.9.0.orig.tar.bz2',
  sha256: 'b3fb1a43a14d8fbcd8e976de5ede2ea7ce1d768ed173adb33c7ceaaf098dc970',
};
/** By Node's name of the architecture: the compiler's, and readelf's. */
const TARGETS = {
  x64: { triple: 'x86_64-linux-gnu', machine: 'Advanced Micro Devices X86-64' },
  arm64: { triple: 'aarch64-linux-gnu', machine: 'AArch64' },
};

const SBIN = { ...process.env, PATH: `${process.env.PATH}:/usr/sbin:/sbin` };
const PACKAGES = [
  { name: 'debootstrap', present: () => existsSync('/usr/sbin/debootstrap') },
  {
    name: 'debian-archive-keyring',
    present: () => existsSync('/usr/share/keyrings/debian-archive-keyring.gpg'),
  },
  { name: 'bzip2', present: () => works('bzip2', ['--version']) },
];

// ---- what it is built from and in

/** Something in the cache that is there whole or not at all. */
function cached(path, message, make) {
  if (existsSync(path)) return path;
  say(message);
  mkdirSync(PREBUILD_CACHE, { recursive: true });
  const temporary = mkdtempSync(join(PREBUILD_CACHE, 'new-'));
  try {
    renameSync(make(temporary), path);
  } catch (error) {
    // Unless somebody else has made it meanwhile.
    if (!existsSync(path)) throw error;
  } finally {
    rmSync(temporary, { recursive: true, force: true });
  }
  return path;
}

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

/**
 * The archive of hwloc's source, by the machine's own sources of packages, or the one that
 * HWLOC_ARCHIVE names.
 */
function hwlocArchive() {
  const message = `fetching the source package of hwloc ${HWLOC.version} (or HWLOC_ARCHIVE names its ${HWLOC.archive})`;
  const path =
    process.env.HWLOC_ARCHIVE ??
    cached(join(PREBUILD_CACHE, HWLOC.archive), message, (temporary) => {
      const parts = join(temporary, 'sources');
      const lists = join(temporary, 'lists');
      for (const folder of [parts, lists]) mkdirSync(folder);
      aptSources().forEach((file, i) => {
        const text = readFileSync(file, 'utf8');
        const sources = text.replace(/^Types:.*$/gm, 'Types: deb-src').replace(/^deb /gm, 'deb-src ');
        writeFileSync(join(parts, `${i}-${basename(file)}`), sources);
      });
      const options = {
        'Dir::Etc::sourcelist': '/dev/null',
        'Dir::Etc::sourceparts': parts,
        'Dir::State::lists': lists,
      };
      const flags = Object.entries(options).flatMap(([name, value]) => ['-o', `${name}=${value}`]);
      run('apt-get', [...flags, 'update', '-q']);
      run('apt-get', [...flags, 'source', '-q', '--download-only', HWLOC.package], { cwd: temporary });
      return join(temporary, HWLOC.archive);
    });
  const found = createHash('sha256').update(readFileSync(path)).digest('hex');
  if (found !== HWLOC.sha256) {
    fail(`${path} is not hwloc ${HWLOC.version}: its SHA-256 is ${found}, not ${HWLOC.sha256}`);
  }
  return path;
}

function aptSources() {
  const parts = '/etc/apt/sources.list.d';
  const files = existsSync(parts) ? readdirSync(parts).filter((name) => /\.(list|sources)$/.test(name)) : [];
  return ['/etc/apt/sources.list', ...files.map((name) => join(parts, name))].filter((path) =>
    existsSync(path),
  );
}

// ---- building

const { packages: LOCKED } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'));

/** The folder of a package, and those of the packages that it needs. */
function withDependencies(path) {
  const places = Object.keys(LOCKED[path].dependencies ?? {}).map((name) =>
    [`${path}/node_modules/${name}`, `node_modules/${name}`].find((place) => place in LOCKED),
  );
  return [path, ...places.flatMap(withDependencies)];
}

/** As prebuildify names it. */
const fileOf = (arch) => `prebuilds/linux-${arch}/numalign.glibc.node`;

function prebuild(arch) {
  const { triple } = TARGETS[arch];
  const prefix =
    nodePrefix() ?? fail(`Node's headers are not beside ${process.execPath}: use a Node that brings them`);
  // With what it needs beside it, in npm's own node_modules.
  const [npm, gyp] = nodeGyp().split(/\/node_modules(?=\/node-gyp\/)/);
  if (gyp === undefined) fail(`${nodeGyp()} is not npm's own node-gyp: use the npm that comes with Node`);
  const folder = mkdtempSync(join(PREBUILD_SYSTEM, 'prebuild-'));
  const inside = `/${basename(folder)}`;
  // Nothing of the caller's: of npm's settings only those that are named.
  const env = {
    ...{ PATH: `${inside}/node:/usr/sbin:/usr/bin:/sbin:/bin`, HOME: inside, LC_ALL: 'C.UTF-8' },
    ...{ CC: `${triple}-gcc`, CXX: `${triple}-g++`, LDFLAGS: '-static-libstdc++ -static-libgcc' },
    ...{ HWLOC_PREFIX: `${inside}/hwloc`, npm_config_nodedir: `${inside}/node`, npm_config_jobs: 'max' },
    ...{ PREBUILD_NODE_GYP: `${inside}/npm/node_modules${gyp}`, PREBUILD_STRIP_BIN: `${triple}-strip` },
  };
  const runInside = (command) =>
    run('chroot', [PREBUILD_SYSTEM, 'sh', '-ec', `cd ${inside}; ${command}`], { env });
  try {
    run('tar', ['-xf', hwlocArchive(), '-C', folder]);
    const licence = readFileSync(join(folder, `hwloc-${HWLOC.version}/COPYING`), 'utf8').trim();
    if (!readFileSync(join(root, 'THIRD-PARTY-NOTICES.md'), 'utf8').includes(licence)) {
      fail(`THIRD-PARTY-NOTICES.md has not the text of COPYING of hwloc ${HWLOC.version}`);
    }
    for (const path of [
      ...ADDON_INPUTS,
      'scripts/hwloc-static.sh',
      'package.json',
      ...['node_modules/node-addon-api', 'node_modules/prebuildify'].flatMap(withDependencies),
    ]) {
      cpSync(join(root, path), join(folder, path), { recursive: true, dereference: true });
    }
    cpSync(join(prefix, 'include/node'), join(folder, 'node/include/node'), { recursive: true });
    copyFileSync(realpathSync(process.execPath), join(folder, 'node/node'));
    cpSync(`${npm}/node_modules`, join(folder, 'npm/node_modules'), { recursive: true });
    // Debian's own Node, for one, asks for more than a Debian 11 has.
    runInside('node --version');
    const source = `../hwloc-${HWLOC.version}`;
    runInside(
      `mkdir hwloc-build; cd hwloc-build; sh ../scripts/hwloc-static.sh ${source} $HWLOC_PREFIX ${triple}`,
    );
    const flags = `--napi --strip --tag-libc --name numalign --arch ${arch} --target ${process.version}`;
    runInside(`node node_modules/prebuildify/bin.js ${flags}`);
    const built = join(folder, fileOf(arch));
    check(built, arch);
    mkdirSync(join(root, 'prebuilds', `linux-${arch}`), { recursive: true });
    // At once, for who packs meanwhile.
    copyFileSync(built, join(root, `.cache/${arch}.node`));
    renameSync(join(root, `.cache/${arch}.node`), join(root, fileOf(arch)));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

// ---- what it needs where it runs

const newer = (a, b) => a.localeCompare(b, 'en', { numeric: true }) > 0;

/** Fails where the addon asks for more than is promised, or shows more than Node looks for. */
function check(file, arch) {
  const readelf = (option) => run('readelf', ['-W', option, file]);
  const [, machine] = /^ *Machine: *(.*)$/m.exec(readelf('--file-header'));
  if (machine !== TARGETS[arch].machine) fail(`${file} is for ${machine}, not for ${TARGETS[arch].machine}`);
  const libraries = [...readelf('--dynamic').matchAll(/\(NEEDED\).*\[(.*)\]/g)].map(([, name]) => name);
  const others = libraries.filter((name) => !LIBRARIES.test(name));
  if (libraries.length === 0 || others.length > 0)
    fail(`${file} needs more than glibc: ${others.join(', ')}`);
  const symbols = readelf('--dyn-syms');
  const versions = [...symbols.matchAll(/@GLIBC_([\w.]+)/g)].map(([, version]) => version);
  const floor = versions.reduce((a, b) => (newer(a, b) ? a : b), '0');
  if (floor === '0' || newer(floor, GLIBC)) fail(`${file} needs glibc ${floor}, which is more than ${GLIBC}`);
  const shown = [...symbols.matchAll(/ (?:GLOBAL|WEAK|UNIQUE) +\w+ +\d+ ([^\s@]+)$/gm)]
    .map(([, name]) => name)
    .sort();
  if (shown.join() !== EXPORTS.join())
    fail(`${file} exports ${shown.join(', ')}, not only ${EXPORTS.join(', ')}`);
  return `${(statSync(file).size / 1e6).toFixed(1)} MB, needs glibc ${floor} and nothing else`;
}

function setUp() {
  if (process.getuid() !== 0 || !works('apt-get', ['--version'])) {
    fail('prebuilt addons are made by root on a Debian. CONTRIBUTING.md says how to pack without');
  }
  const needed = installPackages(PACKAGES);
  if (needed.length > 0) fail(`please install what is missing, as root: ${aptCommand(needed)}`);
  oldSystem();
}

const { values } = parseArgs({ options: { arch: { type: 'string', default: Object.keys(TARGETS).join() } } });
const archs = values.arch.split(',');
const unknown = archs.filter((arch) => !(arch in TARGETS));
if (unknown.length > 0) fail(`--arch ${unknown.join()}: valid are ${Object.keys(TARGETS).join(', ')}`);
for (const arch of archs) {
  const scripts = ['prebuild.mjs', 'addon.mjs', 'hwloc-static.sh'].map((name) => `scripts/${name}`);
  const inputs = [
    ...ADDON_INPUTS,
    ...scripts,
    'node_modules/node-addon-api/package.json',
    'node_modules/prebuildify/package.json',
  ];
  step(`prebuild-${arch}`, inputs, [fileOf(arch)], `compiling ${fileOf(arch)}`, () => {
    setUp();
    prebuild(arch);
  });
  say(`${fileOf(arch)}: ${check(join(root, fileOf(arch)), arch)}`);
}
