// containerd, runc and busybox, out of Debian's packages: downloaded once, installed nowhere.
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { cacheFolder } from '../../../../scripts/cache-folder.mjs';
import { debianMirror, run, sourceOptions, unpackPackages } from '../../../../test/vm/debian-packages.mjs';
import { writeImage } from './image.mjs';

const KEYRING = '/usr/share/keyrings/debian-archive-keyring.gpg';
const [OLD, NEW] = ['bookworm', 'trixie'];

// `libraries`: those of Debian 12 do for both.
const PACKAGES = {
  containerd: `containerd/${NEW}`,
  // The release without NRI.
  'containerd-1.6': `containerd/${OLD}`,
  runc: `runc/${OLD}`,
  busybox: `busybox-static/${OLD}`,
};

function sources() {
  const mirror = debianMirror();
  return [OLD, NEW].map((suite) => `deb [signed-by=${KEYRING}] ${mirror} ${suite} main\n`).join('');
}

function fetchPackages(folder) {
  const wanted = Object.entries(PACKAGES).filter(([name]) => !existsSync(join(folder, name)));
  if (wanted.length === 0) return;
  // Each run has lists of its own: apt locks them.
  const apt = mkdtempSync(join(folder, 'apt-'));
  try {
    const flags = sourceOptions(apt, 'debian', sources());
    for (const [name, wish] of wanted) unpackPackages([wish], join(folder, name), flags);
  } finally {
    rmSync(apt, { recursive: true, force: true });
  }
}

/**
 * The programs' paths, and the path of the image.
 *
 * @throws Error if they are out of reach
 */
export function prepareComponents() {
  const folder = cacheFolder('numalign-containers');
  mkdirSync(folder, { recursive: true });
  fetchPackages(folder);
  const inPackage = (name, ...path) => join(folder, name, ...path);
  const busybox = ['bin', 'usr/bin'].map((bin) => inPackage('busybox', bin, 'busybox')).find(existsSync);
  const runc = ['usr/sbin', 'usr/bin'].map((bin) => inPackage('runc', bin, 'runc')).find(existsSync);
  const programs = (name) => inPackage(name, 'usr/bin');
  const image = join(folder, 'image.tar');
  if (!existsSync(image)) writeImage(busybox, image);
  return {
    /** By name, the folder with `containerd`, its shim and `ctr`. */
    containerd: { containerd: programs('containerd'), 'containerd-1.6': programs('containerd-1.6') },
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
    ...Object.values(containerd).map((folder) => ['containerd', containerdVersion(folder)]),
    ['runc', versionOf(runc)],
    ['busybox', versionOf(busybox, '--help')],
  ];
  return versions.map((each) => each.join(' ')).join(', ');
}
