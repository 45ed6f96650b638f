// What prebuilt addons for glibc and for musl share: hwloc's source, and the check of an addon.
import { createHash } from 'node:crypto';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { PREBUILD_CACHE } from './cache-folder.mjs';
import { fail, root, run, say } from './steps.mjs';

/** readelf's names by Node's name of the architecture. */
const MACHINES = { x64: 'Advanced Micro Devices X86-64', arm64: 'AArch64' };
export const HWLOC = {
  version: '2.9.0',
  package: 'hwloc=2.9.0-1',
  archive: 'hwloc_2.9.0.orig.tar.bz2',
  sha256: 'b3fb1a43a14d8fbcd8e976de5ede2ea7ce1d768ed173adb33c7ceaaf098dc970',
};
/** The symbols that Node looks for. */
const EXPORTS = ['napi_register_module_v1', 'node_api_module_get_api_version_v1'];

/** A path in the cache that exists completely or not at all. */
export async function cached(path, message, make) {
  if (existsSync(path)) return path;
  say(message);
  mkdirSync(PREBUILD_CACHE, { recursive: true });
  const temporary = mkdtempSync(join(PREBUILD_CACHE, 'new-'));
  try {
    renameSync(await make(temporary), path);
  } catch (error) {
    // Unless another process has made it in the meantime.
    if (!existsSync(path)) throw error;
  } finally {
    rmSync(temporary, { recursive: true, force: true });
  }
  return path;
}

/**
 * The archive of hwloc's source, from the machine's package sources, or the one that HWLOC_ARCHIVE
 * names.
 */
async function hwlocArchive() {
  const message = `fetching the source package of hwloc ${HWLOC.version} (or HWLOC_ARCHIVE names its ${HWLOC.archive})`;
  const path =
    process.env.HWLOC_ARCHIVE ??
    (await cached(join(PREBUILD_CACHE, HWLOC.archive), message, (temporary) => {
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
    }));
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

/** Unpacks hwloc's source into a folder. */
export async function unpackHwloc(folder) {
  run('tar', ['-xf', await hwlocArchive(), '-C', folder]);
  const licence = readFileSync(join(folder, `hwloc-${HWLOC.version}/COPYING`), 'utf8').trim();
  if (!readFileSync(join(root, 'THIRD-PARTY-NOTICES.md'), 'utf8').includes(licence)) {
    fail(`THIRD-PARTY-NOTICES.md does not have the text of COPYING of hwloc ${HWLOC.version}`);
  }
}

/** The name that node-gyp-build looks for. */
export const fileOf = (arch, libc) => `prebuilds/linux-${arch}/numalign.${libc}.node`;

/** Copies a file to a path at once, in case another process is packing. */
function put(from, path) {
  const temporary = `${path}.${process.pid}`;
  mkdirSync(dirname(path), { recursive: true });
  copyFileSync(from, temporary);
  renameSync(temporary, path);
}

const ADDONS = join(PREBUILD_CACHE, 'addons');
/** How many addons of a target are kept. */
const KEPT = 4;

/**
 * Puts an addon in its place: the one that a clone has made from the same sources (`key`), or the one
 * that `make` makes, which is kept for all clones.
 */
export async function publish(arch, libc, key, make) {
  const begin = `${arch}.${libc}.`;
  const kept = join(ADDONS, `${begin}${key}.node`);
  if (!existsSync(kept)) await make((built) => put(built, kept));
  put(kept, join(root, fileOf(arch, libc)));
  const others = readdirSync(ADDONS).filter((name) => name.startsWith(begin) && name.endsWith('.node'));
  const times = new Map(others.map((name) => [name, statSync(join(ADDONS, name)).mtimeMs]));
  others.sort((a, b) => times.get(b) - times.get(a));
  for (const name of others.slice(KEPT)) rmSync(join(ADDONS, name));
}

/**
 * Fails if an addon is for another machine, needs a library that may be missing, may be unloaded,
 * or exports more than Node looks for. Returns its symbols, as readelf prints them.
 */
export function checkAddon(file, arch, libraries) {
  const readelf = (option) => run('readelf', ['-W', option, file]);
  const [, machine] = /^ *Machine: *(.*)$/m.exec(readelf('--file-header'));
  if (machine !== MACHINES[arch]) fail(`${file} is for ${machine}, not for ${MACHINES[arch]}`);
  const dynamic = readelf('--dynamic');
  if (!/\(FLAGS_1\).*\bNODELETE\b/.test(dynamic)) fail(`${file} is not linked with -z nodelete`);
  const needed = [...dynamic.matchAll(/\(NEEDED\).*\[(.*)\]/g)].map(([, name]) => name);
  const others = needed.filter((name) => !libraries.test(name));
  if (needed.length === 0 || others.length > 0)
    fail(`${file} needs more than the C library: ${others.join(', ')}`);
  const symbols = readelf('--dyn-syms');
  const shown = [...symbols.matchAll(/ (?:GLOBAL|WEAK|UNIQUE) +\w+ +\d+ ([^\s@]+)$/gm)]
    .map(([, name]) => name)
    .sort();
  if (shown.join() !== EXPORTS.join())
    fail(`${file} exports ${shown.join(', ')}, not only ${EXPORTS.join(', ')}`);
  return symbols;
}

export const megabytes = (file) => `${(statSync(file).size / 1e6).toFixed(1)} MB`;
