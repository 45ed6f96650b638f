// Builds yardstick.c and usage.c if they have changed, and loads the first.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

const require = createRequire(import.meta.url);
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

function compile(source, output, flags) {
  if (existsSync(output) && statSync(output).mtimeMs >= statSync(source).mtimeMs) return;
  mkdirSync(folder, { recursive: true });
  const args = ['-std=c11', '-O2', '-Wall', '-Wextra', source, '-o', output, ...flags()];
  const { status, stderr, error } = spawnSync(process.env.CC ?? 'cc', args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`${source} does not compile: ${stderr ?? error?.message}`);
}

const sourceOf = (name) => fileURLToPath(new URL(name, import.meta.url));

compile(sourceOf('yardstick.c'), addon, () => [
  ...['-fPIC', '-shared', '-DNAPI_VERSION=9', `-I${require('node-api-headers').include_dir}`],
  ...hwlocFlags(),
]);

/** The functions of yardstick.c. */
export const yardstick = require(addon);

/** The program of usage.c. */
export const USAGE = `${folder}/usage`;
compile(sourceOf('usage.c'), USAGE, () => []);
