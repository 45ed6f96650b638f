// Builds yardstick.c if it has changed, and loads it.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

const require = createRequire(import.meta.url);
const source = fileURLToPath(new URL('yardstick.c', import.meta.url));
const folder = fileURLToPath(new URL('../../build/bench', import.meta.url));
const addon = `${folder}/yardstick.node`;

function hwlocFlags() {
  const script = fileURLToPath(new URL('../../scripts/hwloc-flags.sh', import.meta.url));
  return ['--cflags', '--libs'].flatMap((kind) => {
    const { status, stdout, stderr } = spawnSync('sh', [script, kind], { encoding: 'utf8' });
    if (status !== 0) throw new Error(stderr);
    return stdout.split(/\s+/).filter(Boolean);
  });
}

function build() {
  mkdirSync(folder, { recursive: true });
  const includes = `-I${require('node-api-headers').include_dir}`;
  const flags = ['-std=c11', '-O2', '-Wall', '-Wextra', '-fPIC', '-shared', '-DNAPI_VERSION=9', includes];
  const args = [...flags, source, '-o', addon, ...hwlocFlags()];
  const { status, stderr, error } = spawnSync(process.env.CC ?? 'cc', args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`the yardsticks do not compile: ${stderr ?? error?.message}`);
}

if (!existsSync(addon) || statSync(addon).mtimeMs < statSync(source).mtimeMs) build();

/** The functions of yardstick.c. */
export const yardstick = require(addon);
