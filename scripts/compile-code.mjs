// Keeps what V8 compiles of a package's dist/ for a program that pins itself, or for `numalign run`,
// with all functions that this calls: Node, if it is this one, then starts without compiling them
// (lib/compiled-code.ts). The installation runs it, and nothing fails without it.
//
//   node scripts/compile-code.mjs FOLDER
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { setFlagsFromString } from 'node:v8';

const file = fileURLToPath(import.meta.url);
const LIMIT_MS = 20_000;
// Files of which all functions are compiled: cgroups are not used here, since the machine may have none,
// and the first loads these files.
const WHOLE = /^\.\/(compiled-code|groups-)/;
const APART = '--apart';

/** Runs this file apart, as a user's program would run: without hooks, and without settings. */
export function compileCode(root = dirname(dirname(file))) {
  const settings = /^(NODE_|NUMALIGN_|HWLOC_)/;
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !settings.test(name)));
  const temporary = mkdtempSync(join(tmpdir(), 'numalign-compile-'));
  try {
    const options = { env, stdio: 'ignore', timeout: LIMIT_MS, killSignal: 'SIGKILL' };
    spawnSync(process.execPath, [file, root, APART, temporary], options);
  } finally {
    rmSync(temporary, { recursive: true, force: true });
  }
}

/**
 * What V8 compiles of the package's files that loadCompiled() and loadLater() are to load from now on, and
 * their sources.
 */
function compilersOf(loader, { cache }, folder) {
  const compilers = new Map();
  const { loadCompiled, loadLater } = loader;
  const isOwn = ({ filename }) => filename.startsWith(`${folder}/dist/`);
  const load = (parent, path) => {
    const file = join(dirname(parent.filename), path);
    if (cache[file]) return;
    const fd = openSync(file);
    const source = loader.readSource(fd);
    closeSync(fd);
    if (WHOLE.test(path)) setFlagsFromString('--no-lazy');
    compilers.set(file, { source, script: loader.loadModule(file, parent, source) });
    setFlagsFromString('--lazy');
  };
  loader.loadCompiled = (parent, paths) => {
    if (!isOwn(parent)) loadCompiled(parent, paths);
    else for (const path of paths) load(parent, path);
  };
  loader.loadLater = (parent, path) => {
    if (!isOwn(parent)) return loadLater(parent, path);
    // Once this program has ended, also what it has not come to.
    process.prependListener('exit', () => load(parent, path));
    return () => {
      load(parent, path);
      return cache[join(dirname(parent.filename), path)].exports;
    };
  };
  return compilers;
}

// In a state folder of their own no other process sees these grants. The program that is to take the
// place of this process has no interpreter, so that the kernel refuses it.

/** What most programs do, in a folder with settings and a grant of a program that has ended. */
async function usePackage(require, stateDir, program) {
  const settings = { stateDir, reservedSystemCPUs: '0', besideKubelet: true };
  const library = JSON.stringify(require.resolve('./dist/index.cjs'));
  const before = `require(${library}).pin({ cpu: 1, manager: ${JSON.stringify(settings)} }).then(() => process.exit());`;
  spawnSync(process.execPath, ['-e', before], { stdio: 'ignore' });
  const { openManager, pin } = require('./dist/index.cjs');
  await (await pin({ cpu: 1, manager: settings })).release();
  const manager = await openManager(settings);
  const grant = await manager.acquire({ cpu: 1 });
  require('./dist/entries/tools.cjs');
  JSON.stringify(grant);
  grant.exec(program);
}

/** The command that ends as most do. */
async function useCommand(require, stateDir, program, loader) {
  const filename = require.resolve('./dist/main.cjs');
  const options = ['--cpus', '1', '--reserved', '0', '--beside-kubelet', '--state-dir', stateDir];
  process.argv = [process.execPath, filename, 'run', ...options, '--', program];
  require(filename);
  // What the others need, without the functions that they call.
  loader.loadCompiled({ filename }, ['./shared.cjs', './program.cjs']);
}

// V8 compares its flags with those of the time when it wrote the code.
const hasSparkplug = () =>
  /--sparkplug \(.*\)\s+type: bool\s+default: (--sparkplug|true)/.test(
    spawnSync(process.execPath, ['--v8-options'], { encoding: 'utf8' }).stdout,
  );

function write(folder, loader, compilers) {
  if (hasSparkplug()) setFlagsFromString('--sparkplug');
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  // Whatever the umask: others may read it, as the package itself.
  for (const each of [dirname(folder), folder]) chmodSync(each, 0o755);
  for (const [file, { source, script }] of compilers) {
    const path = join(folder, `${basename(file)}.bin`);
    writeFileSync(`${path}.new`, loader.compiledFile(script.createCachedData(), file, source));
    chmodSync(`${path}.new`, 0o644);
    renameSync(`${path}.new`, path);
  }
}

const [, started, folder, mode, temporary] = process.argv;
if (started === file && mode !== APART) compileCode(resolve(folder));
else if (started === file) {
  // Compiled code says which functions Sparkplug has compiled: V8 then does that at their first call.
  setFlagsFromString('--no-sparkplug');
  const require = createRequire(join(folder, 'package.json'));
  const loader = require(join(dirname(dirname(file)), 'dist/compiled-code.cjs'));
  const compilers = compilersOf(loader, require, folder);
  process.on('exit', () => {
    const first = './compiled-code.cjs';
    // The loader itself, a second time.
    const known = join(folder, 'dist', first);
    if (known in require.cache) {
      delete require.cache[known];
      loader.loadCompiled({ filename: join(folder, 'dist/index.cjs') }, [first]);
    }
    write(loader.compiledFolder(folder), loader, compilers);
  });
  const program = join(temporary, 'program');
  writeFileSync(program, '#!/dev/null\n', { mode: 0o755 });
  const use = existsSync(join(folder, 'dist/main.cjs')) ? useCommand : usePackage;
  // Where something fails, what was called until then is compiled.
  await use(require, join(temporary, 'state'), program, loader).catch(() => {});
}
