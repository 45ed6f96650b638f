// Keeps what V8 compiles of dist/ for a program that pins itself, with all functions that this
// calls: Node, if it is this one, then starts without compiling them (lib/compiled-code.ts). The
// installation runs it, and nothing fails without it.
//
//   node scripts/compile-code.mjs
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const file = fileURLToPath(import.meta.url);
const root = dirname(dirname(file));
const LIMIT_MS = 20_000;

/** Runs this file apart, as a user's program would run: without hooks, and without settings. */
export function compileCode() {
  const settings = /^(NODE_|NUMALIGN_|HWLOC_)/;
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !settings.test(name)));
  spawnSync(process.execPath, [file], { env, stdio: 'ignore', timeout: LIMIT_MS });
}

/** What V8 compiles of the files that loadCompiled() is to load from now on, and their sources. */
function compilersOf(loader, { cache }) {
  const compilers = new Map();
  loader.loadCompiled = (parent, paths) => {
    for (const path of paths) {
      const file = join(dirname(parent.filename), path);
      if (cache[file]) continue;
      const source = readFileSync(file);
      compilers.set(basename(file), { source, script: loader.loadModule(file, parent, source) });
    }
  };
  return compilers;
}

/** What most programs do. Where it fails, what it has called until then is compiled. */
async function usePackage(require) {
  const stateDir = mkdtempSync(join(tmpdir(), 'numalign-compile-'));
  try {
    const { pin } = require('./dist/index.cjs');
    // A folder of its own: no other process can see this grant.
    const manager = { stateDir, reservedSystemCPUs: '0', besideKubelet: true };
    const grant = await pin({ cpu: 1, optional: true, manager });
    await grant.release();
  } finally {
    rmSync(stateDir, { recursive: true, force: true });
  }
}

function write(loader, compilers) {
  const folder = loader.compiledFolder(root);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true, mode: 0o755 });
  for (const [name, { source, script }] of compilers) {
    const path = join(folder, `${name}.bin`);
    writeFileSync(`${path}.new`, loader.compiledFile(script.createCachedData(), source), { mode: 0o644 });
    renameSync(`${path}.new`, path);
  }
}

if (process.argv[1] === file) {
  const require = createRequire(join(root, 'package.json'));
  const loader = require('./dist/compiled-code.cjs');
  const compilers = compilersOf(loader, require);
  await usePackage(require).catch(() => {});
  write(loader, compilers);
}
