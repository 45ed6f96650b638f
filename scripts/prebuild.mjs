// npm run prebuild [-- --arch x64,arm64 --libc glibc,musl]: makes
// prebuilds/linux-ARCH/numalign.glibc.node, and numalign.musl.node beside it (see
// prebuild-musl.mjs). The first runs wherever Node's own binaries run: hwloc and the C++ library
// are linked in, and it needs no newer glibc than Node does. That takes an old compiler on an old
// system: the root folder of a Debian 11, which is set up once in ~/.cache/numalign-prebuild (as
// root, 1.5 GB). Other architectures are cross-compiled. What is finished is kept there: the system,
// each hwloc and each addon, by what it is made of. Cut off, it goes on with the rest.
//
//   --check          only says whether there is something to do, and fails then: for `npm pack`
//
//   DEBIAN_MIRROR    where Debian 11 is, if it has moved
//   HWLOC_ARCHIVE    the archive of hwloc's source, if apt has another version
import { createHash } from 'node:crypto';
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { basename, join } from 'node:path';
import { parseArgs } from 'node:util';
import { addonInputs, nodeGyp, nodePrefix } from './addon.mjs';
import { PREBUILD_CACHE, PREBUILD_SYSTEM } from './cache-folder.mjs';
import { checkMusl, prebuildMusl } from './prebuild-musl.mjs';
import { cached, checkAddon, fileOf, HWLOC, megabytes, publish, unpackHwloc } from './prebuild-parts.mjs';
import {
  aptCommand,
  fail,
  hashOf,
  installPackages,
  isDone,
  root,
  run,
  runLong,
  say,
  step,
  works,
} from './steps.mjs';

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

async function oldSystem() {
  const suite = basename(PREBUILD_SYSTEM);
  const across = Object.keys(TARGETS).filter((arch) => arch !== process.arch);
  const compilers = ['g++', ...across.map((arch) => `g++-${TARGETS[arch].triple.replace('_', '-')}`)];
  const packages = [...compilers, 'make', 'pkg-config', 'python3'];
  await cached(PREBUILD_SYSTEM, `setting up a Debian 11 (${suite}) to compile in`, async (temporary) => {
    const made = join(temporary, suite);
    // What was downloaded before a cut is not downloaded again.
    const downloads = join(PREBUILD_CACHE, 'downloads');
    mkdirSync(downloads, { recursive: true });
    const options = ['--variant=minbase', '--force-check-gpg', `--cache-dir=${downloads}`];
    const { DEBIAN_MIRROR } = process.env;
    const words = [`--include=${packages.join(',')}`, suite, made, ...(DEBIAN_MIRROR ? [DEBIAN_MIRROR] : [])];
    await runLong('debootstrap', [...options, ...words], { env: SBIN, progress: { what: 'system' } });
    run('chroot', [made, 'apt-get', 'clean'], { env: SBIN });
    rmSync(downloads, { recursive: true });
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

/** The prefix of a static hwloc, made by `compile` in a folder of the old system. */
function hwloc(arch, compile) {
  const script = readFileSync(join(root, 'scripts/hwloc-static.sh'));
  const hash = createHash('sha256').update(script).update(HWLOC.sha256).digest('hex').slice(0, 8);
  const path = join(PREBUILD_CACHE, `hwloc-${HWLOC.version}-${arch}-glibc-${hash}`);
  return cached(path, `compiling hwloc for ${TARGETS[arch].triple}`, async (temporary) => {
    cpSync(await compile(), join(temporary, 'hwloc'), { recursive: true });
    return join(temporary, 'hwloc');
  });
}

/** `keep` takes the path of the addon. */
async function prebuild(arch, keep) {
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
  const inChroot = (command) => [PREBUILD_SYSTEM, 'sh', '-ec', `cd ${inside}; ${command}`];
  const runInside = (command, progress) => runLong('chroot', inChroot(command), { env, progress });
  try {
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
    run('chroot', inChroot('node --version'), { env });
    const made = await hwloc(arch, async () => {
      await unpackHwloc(folder);
      const command = `sh ../scripts/hwloc-static.sh ../hwloc-${HWLOC.version} ${inside}/made ${triple}`;
      await runInside(`mkdir hwloc-build; cd hwloc-build; ${command}`, { what: 'hwloc' });
      return join(folder, 'made');
    });
    cpSync(made, join(folder, 'hwloc'), { recursive: true });
    // It was made for another folder.
    const file = join(folder, 'hwloc/lib/pkgconfig/hwloc.pc');
    writeFileSync(file, readFileSync(file, 'utf8').replace(/^prefix=.*$/m, `prefix=${inside}/hwloc`));
    const flags = `--napi --strip --tag-libc --name numalign --arch ${arch} --target ${process.version}`;
    const sources = readFileSync(join(root, 'native/sources.txt'), 'utf8').trim().split('\n');
    const progress = { what: 'files', line: /^ *CXX\(target\)/gm, total: sources.length };
    await runInside(`node node_modules/prebuildify/bin.js ${flags}`, progress);
    const built = join(folder, fileOf(arch, 'glibc'));
    check(built, arch);
    keep(built);
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
    check: { type: 'boolean', default: false },
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

/** By C library: what else its addons are made of, how they are made, and checked. */
const MAKERS = {
  glibc: {
    more: ['scripts/prebuild.mjs', 'node_modules/prebuildify/package.json'],
    checkFile: check,
    make: async (arch, keep) => {
      if (process.getuid() !== 0 || !works('apt-get', ['--version']))
        fail('addons for glibc must be made by root on a Debian');
      setUp(GLIBC_PACKAGES);
      await oldSystem();
      await prebuild(arch, keep);
    },
  },
  musl: {
    more: ['scripts/prebuild-musl.mjs'],
    checkFile: checkMusl,
    make: async (arch, keep) => {
      setUp(MUSL_PACKAGES);
      await prebuildMusl(arch, keep);
    },
  },
};

const SHARED = [
  ...addonInputs(),
  ...['addon.mjs', 'hwloc-static.sh', 'prebuild-parts.mjs'].map((name) => `scripts/${name}`),
  'node_modules/node-addon-api/package.json',
];

const targets = archs.flatMap((arch) =>
  libcs.map((libc) => {
    const inputs = [...SHARED, ...MAKERS[libc].more];
    const [file, name, key] = [fileOf(arch, libc), `prebuild-${arch}-${libc}`, hashOf(inputs)];
    return { arch, libc, inputs, file, name, key, isMade: isDone(name, key, [file]) };
  }),
);
const missing = targets.filter(({ isMade }) => !isMade);
const left = `${missing.map(({ file }) => file).join(', ')} ${missing.length === 1 ? 'is' : 'are'}`;

if (values.check && missing.length > 0)
  fail(
    `${left} missing, or older than the sources: run \`npm run prebuild\` first. It takes up to 5 minutes for each on two CPUs, and goes on where it was cut off. Without them: npm run compile && npm run sources && npm pack --ignore-scripts`,
  );
if (missing.length > 0)
  say(
    `${missing.length} of ${targets.length} addons to make, up to 5 minutes each; what is finished is kept`,
  );
for (const { arch, libc, inputs, file, name, key } of values.check ? [] : targets) {
  const { make, checkFile } = MAKERS[libc];
  const at = `${targets.findIndex((each) => each.file === file) + 1} of ${targets.length}`;
  await step(name, inputs, [file], `${at}: ${file}`, () =>
    publish(arch, libc, key, (keep) => make(arch, keep)),
  );
  say(`${file}: ${megabytes(join(root, file))}, ${checkFile(join(root, file), arch)}`);
}
