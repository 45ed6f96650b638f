// What the image's tests need beside a runtime: a base image by debootstrap, and images by buildah,
// without a daemon or a registry.
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { cacheFolder } from '../../../../scripts/cache-folder.mjs';
import { ARCHITECTURES, makeImageContext } from '../../../../scripts/image-context.mjs';
import { installPackages, works } from '../../../../scripts/steps.mjs';
import { prepareDebian, run } from '../../../../test/vm/debian-packages.mjs';

/** Debian's release with the libraries that Node needs. */
const RELEASE = 'bookworm';
const OCI_ARCHITECTURES = { x64: 'amd64', arm64: 'arm64' };
const NEEDED = [
  { name: 'buildah', present: () => works('buildah', ['--version']) },
  { name: 'debootstrap', present: () => existsSync('/usr/sbin/debootstrap') },
];

/** Installs what is missing; returns the names of what is still missing. */
export const prepareTools = () => installPackages(NEEDED);

/** Images in a folder of the tests' own. */
export class Images {
  #folder;
  #flags;

  constructor(folder) {
    this.#folder = folder;
    const places = { '--root': 'storage', '--runroot': 'run' };
    this.#flags = [
      ...Object.entries(places).flatMap(([flag, name]) => [flag, join(folder, name)]),
      ...['--storage-driver', 'vfs'],
    ];
  }

  #buildah(...args) {
    return run('buildah', [...this.#flags, ...args], { cwd: this.#folder })
      .toString()
      .trim();
  }

  /**
   * A base image as an OCI layout, of a Debian and this Node; of other architectures an empty one.
   * Returns it as `FROM` takes it.
   */
  base(architecture) {
    const isOurs = architecture === process.arch;
    const cache = cacheFolder('numalign-image');
    mkdirSync(cache, { recursive: true });
    // Buildah takes the path for the name of an image: small letters, and no name that begins with a dot.
    const link = join(this.#folder, `base-${architecture}`);
    if (existsSync(link)) return `oci:${link}:base`;
    const layout = join(
      isOurs ? cache : this.#folder,
      `${architecture}-${isOurs ? process.version : 'empty'}`,
    );
    if (!existsSync(layout)) this.#makeBase(architecture, layout, cache);
    symlinkSync(layout, link);
    return `oci:${link}:base`;
  }

  #makeBase(architecture, layout, cache) {
    const container = this.#buildah('from', '--arch', OCI_ARCHITECTURES[architecture], 'scratch');
    if (architecture === process.arch) {
      const debian = prepareDebian(cache, RELEASE, ['ca-certificates', 'libstdc++6']);
      this.#buildah('add', container, debian, '/');
      this.#buildah('add', container, realpathSync(process.execPath), '/usr/local/bin/node');
    }
    const made = `${layout}.new`;
    rmSync(made, { recursive: true, force: true });
    this.#buildah('commit', '--quiet', '--rm', container, `oci:${made}:base`);
    renameSync(made, layout);
  }

  /** The context of the Dockerfile, with this version of the agent. */
  context(version) {
    const folder = join(this.#folder, `context-${version}`);
    const first = join(this.#folder, 'context');
    if (!existsSync(first)) makeImageContext(first);
    cpSync(first, folder, { recursive: true, verbatimSymlinks: true });
    const manifest = join(folder, 'app/node_modules/@numalign/kubernetes/package.json');
    writeFileSync(manifest, JSON.stringify({ ...JSON.parse(readFileSync(manifest, 'utf8')), version }));
    return folder;
  }

  /** Builds the Dockerfile; returns the name of the image. */
  build(context, name, architecture = process.arch) {
    this.#buildah(
      ...[
        'build',
        '--quiet',
        '--isolation',
        'chroot',
        '--platform',
        `linux/${OCI_ARCHITECTURES[architecture]}`,
      ],
      ...['--build-arg', `BASE=${this.base(architecture)}`, '--tag', name, context],
    );
    return name;
  }

  /** What an image says of itself. */
  inspect(name) {
    return JSON.parse(this.#buildah('inspect', '--type', 'image', name)).OCIv1;
  }

  /** The files of an image, in a folder. */
  unpack(name) {
    const container = this.#buildah('from', '--pull-never', name);
    return this.#buildah('mount', container);
  }

  /** The image as an archive that a runtime imports under its name. */
  archive(name) {
    const file = join(mkdtempSync(join(this.#folder, 'archive-')), 'image.tar');
    this.#buildah('push', '--quiet', name, `oci-archive:${file}:${name}`);
    return file;
  }

  /** An index of images of several architectures; returns its platforms. */
  index(name, images) {
    this.#buildah('manifest', 'create', name, ...images);
    const { manifests } = JSON.parse(this.#buildah('manifest', 'inspect', name));
    return manifests.map(({ platform }) => `${platform.os}/${platform.architecture}`);
  }
}

export { ARCHITECTURES };
