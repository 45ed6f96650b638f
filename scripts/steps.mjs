// Shared by the scripts: messages, commands, system packages, and steps that are skipped if there
// is nothing to do.
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('..', import.meta.url));
const name = `numalign ${basename(process.argv[1], '.mjs')}`;

class Failure extends Error {}

// A failure is printed in one line; any other error is a bug.
process.on('uncaughtException', (error) => {
  console.error(error instanceof Failure ? `${name}: ${error.message}` : error);
  process.exit(1);
});

/** Ends the script after all clean-up. */
export function fail(message) {
  throw new Failure(message);
}

export function say(message) {
  console.error(`${name}: ${message}`);
}

/** Runs a command and returns its output, which is shown only if the command fails. */
export function run(command, args, options = {}) {
  const result = spawnSync(command, args, { cwd: root, encoding: 'utf8', maxBuffer: 1 << 28, ...options });
  if (result.status === 0) return result.stdout;
  process.stderr.write(`${result.stdout ?? ''}${result.stderr ?? ''}`);
  return failed([command, ...args], result.error);
}

const failed = (words, error) => fail(`\`${words.join(' ')}\` failed${error ? `: ${error.message}` : ''}`);

const REPORT_MS = 20_000;

/**
 * Like {@link run}, for a command that takes long: says every twenty seconds how long it has run and, by
 * `progress`, how many of `total` lines its output has that match `line`.
 */
export async function runLong(command, args, { input, progress: { what, line, total }, ...options }) {
  const child = spawn(command, args, { cwd: root, ...options, stdio: ['pipe', 'pipe', 'pipe'] });
  const begin = Date.now();
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text) => {
      output += text;
    });
  const timer = setInterval(() => {
    const done = line ? `${Math.min(total, output.match(line)?.length ?? 0)} of ${total}, ` : '';
    say(`  ${what}: ${done}${Math.round((Date.now() - begin) / 1000)} s`);
  }, REPORT_MS);
  child.stdin.end(input);
  const error = await new Promise((resolve) => {
    child.once('error', resolve);
    child.once('close', (code) => resolve(code === 0 ? null : undefined));
  });
  clearInterval(timer);
  if (error === null) return;
  process.stderr.write(output);
  failed([command, ...args], error);
}

export const works = (command, args) => spawnSync(command, args, { stdio: 'ignore' }).status === 0;

const stamps = join(root, '.cache/setup');

export function hashOf(paths) {
  const hash = createHash('sha256').update(process.version);
  const add = (path) => {
    if (statSync(path).isDirectory()) for (const entry of readdirSync(path).sort()) add(join(path, entry));
    else hash.update(path.slice(root.length)).update(readFileSync(path));
  };
  for (const path of paths) add(join(root, path));
  return hash.digest('hex');
}

/** Whether there is nothing to do for a step. */
export const isDone = (stampName, hash, outputs) => {
  const stamp = join(stamps, stampName);
  const isSame = existsSync(stamp) && readFileSync(stamp, 'utf8') === hash;
  return isSame && outputs.every((output) => existsSync(join(root, output)));
};

/** `action` may return a promise; then the step does. */
export function step(stampName, inputs, outputs, message, action) {
  const stamp = join(stamps, stampName);
  const hash = hashOf(inputs);
  if (isDone(stampName, hash, outputs)) return undefined;
  const begin = Date.now();
  say(message);
  // From now on, the outputs may no longer match the stamp.
  rmSync(stamp, { force: true });
  const finish = () => {
    mkdirSync(stamps, { recursive: true });
    writeFileSync(stamp, hash);
    say(`done in ${((Date.now() - begin) / 1000).toFixed(1)} s`);
  };
  const made = action();
  return made instanceof Promise ? made.then(finish) : finish();
}

// System packages are {name, present()}.

export const missing = (packages) => packages.filter((item) => !item.present()).map((item) => item.name);
export const aptCommand = (names) => `apt-get install --no-install-recommends ${names.join(' ')}`;

/**
 * Installs missing packages if this is root's Debian, and reports that by `tell`. Returns the names
 * of packages that are still missing.
 */
export function installPackages(packages, tell = say) {
  const names = missing(packages);
  if (names.length === 0 || process.getuid() !== 0 || !works('apt-get', ['--version'])) return names;
  tell(`installing system packages: ${names.join(' ')}`);
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  const install = ['install', '-y', '-q', '--no-install-recommends', ...names];
  if (spawnSync('apt-get', install, { env, stdio: 'ignore' }).status !== 0) {
    // The package lists of a fresh machine are empty or old.
    run('apt-get', ['update', '-q'], { env });
    run('apt-get', install, { env });
  }
  return missing(packages);
}
