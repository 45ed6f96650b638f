// An OCI image of one busybox, for containers and for the sandboxes of pods.
import { createHash } from 'node:crypto';
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { run } from '../../../../test/vm/debian-packages.mjs';

/** Its name in the runtime. */
export const IMAGE = 'numalign.test/busybox:1';

const ARCHITECTURES = { x64: 'amd64', arm64: 'arm64' };
// As the first process of a pid namespace a shell is deaf to TERM without a trap.
const WAIT = 'trap exit TERM; sleep infinity & wait';
const OCI = 'application/vnd.oci.image';

// The same bytes from the same files, whenever they are packed.
function pack(folder, to) {
  const plain = ['--sort=name', '--mtime=@0', '--owner=0', '--group=0', '--numeric-owner'];
  run('tar', ['-C', folder, ...plain, '-cf', to, '.']);
}

/** Writes the image as an OCI archive, which `ctr images import` takes. */
export function writeImage(busybox, to) {
  const folder = mkdtempSync(join(dirname(to), 'image-'));
  const blobs = join(folder, 'oci/blobs/sha256');
  mkdirSync(blobs, { recursive: true });
  const addBlob = (bytes, kind) => {
    const hash = createHash('sha256').update(bytes).digest('hex');
    writeFileSync(join(blobs, hash), bytes);
    return { mediaType: `${OCI}.${kind}`, digest: `sha256:${hash}`, size: bytes.length };
  };
  const addJson = (value, kind) => addBlob(Buffer.from(JSON.stringify(value)), kind);
  try {
    const tree = join(folder, 'tree');
    for (const name of ['bin', 'dev', 'etc', 'proc', 'sys', 'tmp'])
      mkdirSync(join(tree, name), { recursive: true });
    copyFileSync(busybox, join(tree, 'bin/busybox'));
    for (const name of run(busybox, ['--list']).toString().trim().split('\n'))
      if (name !== 'busybox') symlinkSync('busybox', join(tree, 'bin', name));
    const layerFile = join(folder, 'layer.tar');
    pack(tree, layerFile);
    const layer = addBlob(readFileSync(layerFile), 'layer.v1.tar');
    const config = addJson(
      {
        architecture: ARCHITECTURES[process.arch],
        os: 'linux',
        config: { Env: ['PATH=/bin'], Cmd: ['/bin/sh', '-c', WAIT] },
        rootfs: { type: 'layers', diff_ids: [layer.digest] },
      },
      'config.v1+json',
    );
    const mediaType = `${OCI}.manifest.v1+json`;
    const manifest = addJson({ schemaVersion: 2, mediaType, config, layers: [layer] }, 'manifest.v1+json');
    manifest.annotations = { 'io.containerd.image.name': IMAGE };
    const index = { schemaVersion: 2, manifests: [manifest] };
    writeFileSync(join(folder, 'oci/oci-layout'), '{"imageLayoutVersion":"1.0.0"}');
    writeFileSync(join(folder, 'oci/index.json'), JSON.stringify(index));
    pack(join(folder, 'oci'), join(folder, 'image.tar'));
    renameSync(join(folder, 'image.tar'), to);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
