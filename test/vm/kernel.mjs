// A Debian kernel to boot, with what it needs to reach the host's files. Downloaded once, never
// installed.
import { spawnSync } from 'node:child_process';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { backportsOptions, newestOptions, run, unpackPackages } from './debian-packages.mjs';

const INIT = fileURLToPath(new URL('guest-init.sh', import.meta.url));
const MODULES = [
  'virtio_pci',
  'virtio_blk',
  '9pnet_virtio',
  '9p',
  'overlay',
  'crc32c_generic',
  'ext4',
  'nvme',
  'virtio_net',
  'e1000e',
];

/** The options with which apt finds each kind. */
const SOURCES = { stable: () => [], backports: backportsOptions, newest: newestOptions };

// By the first bytes of the compressed data: the program that unpacks it and ignores what follows.
const COMPRESSIONS = [
  { magic: Buffer.from([0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00]), command: ['xz', '-dc', '--single-stream'] },
  { magic: Buffer.from([0x28, 0xb5, 0x2f, 0xfd]), command: ['zstd', '-dcq'] },
];

// The image in Debian's package is compressed; QEMU starts an unpacked one at once.
function uncompressed(image) {
  for (const { magic, command } of COMPRESSIONS) {
    const [program, ...args] = command;
    for (let at = image.indexOf(magic); at !== -1; at = image.indexOf(magic, at + 1)) {
      const { stdout } = spawnSync(program, args, { input: image.subarray(at), maxBuffer: 1 << 28 });
      if (stdout?.subarray(1, 4).toString('latin1') === 'ELF') return stdout;
    }
  }
  return image;
}

function filesBelow(folder) {
  return readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath ?? entry.path, entry.name));
}

/** The dependencies of a package whose names begin so. */
function dependsOf(name, beginning, flags) {
  const depends = run('apt-cache', [...flags, 'depends', name]).toString();
  return [...depends.matchAll(/Depends: (\S+)/g)]
    .map(([, each]) => each)
    .filter((each) => beginning.test(each));
}

/** The modules that are needed, `[name, bytes]`, each after its dependencies. */
function orderedModules(files) {
  const nameOf = (file) => /([^/]+)\.ko(\.xz)?$/.exec(file)?.[1].replaceAll('-', '_');
  const byName = new Map(files.map((file) => [nameOf(file), file]));
  const ordered = new Map();
  const add = (name) => {
    const file = byName.get(name.replaceAll('-', '_'));
    // Built in.
    if (file === undefined || ordered.has(nameOf(file))) return;
    const bytes = file.endsWith('.xz') ? run('xz', ['-dc', file]) : readFileSync(file);
    const depends = /\0depends=([^\0]*)\0/.exec(bytes.toString('latin1'))?.[1] ?? '';
    for (const other of depends.split(',').filter(Boolean)) add(other);
    ordered.set(nameOf(file), bytes);
  };
  for (const name of MODULES) add(name);
  return [...ordered];
}

// A busybox without libraries, whether Debian's static one is installed or not.
function prepareBusybox(cache) {
  const tree = join(cache, 'busybox');
  if (!existsSync(tree)) unpackPackages(['busybox-static'], tree, []);
  return ['bin', 'usr/bin'].map((folder) => join(tree, folder, 'busybox')).find((file) => existsSync(file));
}

// Complete, or unchanged: another run may be booting from it.
function makeInitrd(files, busybox, to) {
  const temporary = mkdtempSync(`${to}-`);
  const [tree, packed] = ['tree', 'packed'].map((name) => join(temporary, name));
  try {
    mkdirSync(tree);
    for (const folder of ['modules', 'proc', 'sys', 'dev', 'host', 'layer', 'newroot'])
      mkdirSync(join(tree, folder));
    copyFileSync(busybox, join(tree, 'busybox'));
    copyFileSync(INIT, join(tree, 'init'));
    run('chmod', ['755', join(tree, 'init'), join(tree, 'busybox')]);
    orderedModules(files).forEach(([name, bytes], i) => {
      writeFileSync(join(tree, 'modules', `${String(i).padStart(3, '0')}-${name}.ko`), bytes);
    });
    run('sh', ['-c', 'find . | cpio -o -H newc --quiet | gzip -1 > "$0"', packed], { cwd: tree });
    renameSync(packed, to);
  } finally {
    rmSync(temporary, { recursive: true });
  }
}

/**
 * A kernel's image, in `cache`, and its initial file system, in `own`: the latter starts programs
 * of this clone. `kind`: `stable`, `backports` for a newer one, or `newest`.
 */
export function prepareKernel(kind, cache, own) {
  const folder = join(cache, kind);
  const [image, tree] = ['vmlinux', 'kernel'].map((name) => join(folder, name));
  const initrd = join(own, `${kind}.initrd`);
  mkdirSync(folder, { recursive: true });
  if (!existsSync(image)) {
    const flags = SOURCES[kind](cache);
    const [name] = dependsOf('linux-image-amd64', /^linux-image-/, flags);
    if (name === undefined) throw new Error('Debian offers no linux-image-amd64 here');
    // Newer packages have the image and the modules in separate packages, both below /usr.
    const parts = dependsOf(name, /^linux-(binary|modules)-/, flags);
    unpackPackages([name, ...parts], tree, flags);
    const packed = filesBelow(tree).find((file) => /^vmlinuz(-|$)/.test(basename(file)));
    writeFileSync(`${image}.new`, uncompressed(readFileSync(packed)));
    renameSync(`${image}.new`, image);
  }
  makeInitrd(filesBelow(tree), prepareBusybox(cache), initrd);
  return { image, initrd };
}
