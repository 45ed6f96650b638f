// containerd, runc and busybox, out of Debian's packages: downloaded once, installed nowhere. Debian
// has no containerd 2.3 yet: it is used where someone has built it, and runc 1.4 or newer, from source.
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import { cacheFolder } from '../../../../scripts/cache-folder.mjs';
import { debianMirror, run, sourceOptions, unpackPackages } from '../../../../test/vm/debian-packages.mjs';
import { writeImage } from './image.mjs';

const KEYRING = '/usr/share/keyrings/debian-archive-keyring.gpg';
const [OLD, NEW, NEWEST] = ['bookworm', 'trixie', 'sid'];

/** The folders of the cache, and the packages in each. */
const PACKAGES = {
  containerd: [`containerd/${NEW}`],
  // The release without NRI.
  'containerd-1.6': [`containerd/${OLD}`],
  'containerd-2.1': [`containerd/${NEWEST}`],
  runc: [`runc/${OLD}`],
  // With its libraries: those of Debian 12 do for all others.
  'runc-newest': ['runc', 'libc6', 'libseccomp2'].map((name) => `${name}/${NEWEST}`),
  patchelf: [`patchelf/${OLD}`],
  busybox: [`busybox-static/${OLD}`],
};

/** By release of containerd: its folder in the cache, and that of the runc that belongs to it. */
const RELEASES = {
  1.6: { containerd: 'containerd-1.6', runc: 'runc' },
  1.7: { containerd: 'containerd', runc: 'runc' },
  2.1: { containerd: 'containerd-2.1', runc: 'runc-newest', needs: ['patchelf'] },
  // No packages: see SELF_BUILT.
  2.3: { containerd: 'containerd-2.3', runc: 'containerd-2.3' },
};

/** The release that tests run with: `1.7`, or what `--containerd` says. */
export const RELEASE = process.env.NUMALIGN_CONTAINERD || '1.7';
/** Those with NRI, which run by default. */
export const NRI_RELEASES = ['1.7', '2.1'];
/**
 * Those that `--containerd` may choose, too: `containerd`, `containerd-shim-runc-v2`, `ctr` and `runc`
 * are in usr/bin of the release's folder in the cache.
 */
export const SELF_BUILT = ['2.3'];
/** What needs no NRI runs with these: the oldest is tried beside the usual one. */
export const CRI_RELEASES = RELEASE === '1.7' ? ['1.7', '1.6'] : [RELEASE];

/** The mirror cannot be reached. */
export class UnreachableError extends Error {}

function sources(apt, wishes) {
  try {
    const mirror = debianMirror();
    const suites = new Set(wishes.map((wish) => wish.split('/')[1]));
    const lines = [...suites].map((suite) => `deb [signed-by=${KEYRING}] ${mirror} ${suite} main\n`);
    return sourceOptions(apt, 'debian', lines.join(''), ['--error-on=any']);
  } catch (cause) {
    throw new UnreachableError(`no Debian mirror is reachable: ${cause.message}`, { cause });
  }
}

function fetchPackages(folder, names) {
  const wanted = names.filter((name) => !existsSync(join(folder, name)));
  if (wanted.length === 0) return;
  // Each run has lists of its own: apt locks them.
  const apt = mkdtempSync(join(folder, 'apt-'));
  try {
    const wishes = wanted.map((name) => PACKAGES[name]);
    const flags = sources(apt, wishes.flat());
    for (const [i, name] of wanted.entries())
      unpackPackages(wishes[i], join(folder, name), flags, (tree) => linkLibraries(folder, name, tree));
  } finally {
    rmSync(apt, { recursive: true, force: true });
  }
}

/**
 * A program with libraries beside it runs with these. It is told where they are: runc starts itself
 * again by /proc/self/exe, so the loader cannot be the one that starts it.
 */
function linkLibraries(folder, name, tree) {
  const libraries = join('usr/lib', `${{ x64: 'x86_64', arm64: 'aarch64' }[process.arch]}-linux-gnu`);
  if (!existsSync(join(tree, libraries, 'libc.so.6'))) return;
  const patch = (...options) =>
    run(join(folder, 'patchelf/usr/bin/patchelf'), [...options, join(tree, 'usr/sbin/runc')]);
  const loader = basename(`${patch('--print-interpreter')}`.trim());
  const there = join(folder, name, libraries);
  patch('--set-interpreter', join(there, loader), '--set-rpath', there);
}

/**
 * The programs' paths, and the path of the image.
 *
 * @throws UnreachableError if they are not there and the mirror is out of reach
 */
export function prepareComponents(release = RELEASE) {
  const folder = cacheFolder('numalign-containers');
  mkdirSync(folder, { recursive: true });
  const { containerd, runc: runcName, needs = [] } = RELEASES[release];
  const packages = SELF_BUILT.includes(release) ? [] : [...needs, containerd, runcName];
  fetchPackages(folder, ['busybox', ...packages]);
  if (!existsSync(join(folder, containerd)))
    throw new UnreachableError(
      `it is no package; put its programs and runc into ${folder}/${containerd}/usr/bin`,
    );
  const inPackage = (name, ...path) => join(folder, name, ...path);
  const busybox = ['bin', 'usr/bin'].map((bin) => inPackage('busybox', bin, 'busybox')).find(existsSync);
  const runc = ['usr/sbin', 'usr/bin'].map((bin) => inPackage(runcName, bin, 'runc')).find(existsSync);
  const image = join(folder, 'image.tar');
  if (!existsSync(image)) writeImage(busybox, image);
  return {
    release,
    /** The folder with `containerd`, its shim and `ctr`. */
    containerd: inPackage(containerd, 'usr/bin'),
    runc,
    busybox,
    image,
  };
}

const versionIn = (text) => /\d+\.\d+\.\d+/.exec(text)?.[0] ?? text.trim();
const versionOf = (program, option = '--version') => versionIn(run(program, [option]).toString());

/** The version of a containerd in its folder, such as `1.7.24`. */
export const containerdVersion = (folder) => versionOf(join(folder, 'containerd'));

/**
 * The versions of the components, in readable form.
 *
 * @throws Error if they do not run here
 */
export function describeComponents({ containerd, runc, busybox }) {
  const versions = [
    ['containerd', containerdVersion(containerd)],
    ['runc', versionOf(runc)],
    ['busybox', versionOf(busybox, '--help')],
  ];
  return versions.map((each) => each.join(' ')).join(', ');
}
