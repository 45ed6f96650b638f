// node scripts/image-context.mjs FOLDER: makes what packages/kubernetes/deploy/image/Dockerfile is
// built from: FOLDER/app with the packages of this clone and what they depend on, and the Dockerfile.
// Prebuilt addons must be there (npm run prebuild).
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { root, run } from './steps.mjs';

const DOCKERFILE = join(root, 'packages/kubernetes/deploy/image/Dockerfile');
const PACKAGES = ['claims', 'metrics', 'page', 'kubernetes'];
const QUIET = ['--silent', '--no-audit', '--no-fund', '--ignore-scripts'];

/** Of the package, as Node names them. */
export const ARCHITECTURES = ['x64', 'arm64'];

export function makeImageContext(folder) {
  for (const architecture of ARCHITECTURES)
    if (!existsSync(join(root, `prebuilds/linux-${architecture}/numalign.glibc.node`)))
      throw new Error(`there is no addon for ${architecture}: npm run prebuild`);
  const app = join(folder, 'app');
  const tarballs = mkdtempSync(join(tmpdir(), 'numalign-image-'));
  try {
    mkdirSync(app, { recursive: true });
    const workspaces = PACKAGES.flatMap((name) => ['--workspace', `packages/${name}`]);
    for (const which of [[], workspaces])
      run('npm', ['pack', ...QUIET, '--pack-destination', tarballs, ...which], { cwd: root });
    writeFileSync(join(app, 'package.json'), '{ "name": "numalign-node-image", "private": true }\n');
    const files = readdirSync(tarballs).map((name) => join(tarballs, name));
    run('npm', ['install', ...QUIET, '--prefer-offline', '--omit=dev', ...files], { cwd: app });
    // It names the folder of the tarballs.
    rmSync(join(app, 'package-lock.json'));
    copyFileSync(DOCKERFILE, join(folder, 'Dockerfile'));
  } finally {
    rmSync(tarballs, { recursive: true });
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [, , folder] = process.argv;
  if (folder === undefined) {
    console.error('node scripts/image-context.mjs FOLDER');
    process.exit(2);
  }
  makeImageContext(folder);
}
