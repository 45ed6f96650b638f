// npm run test:vm [-- --shape NAME]… [--test NAME]… [--jobs N] [--minutes N]: boots each machine of shapes.mjs once and runs its tests there, all in one batch, for so many
// minutes at most. --list: the machines. --fixtures: also writes what lstopo sees on each to test/fixtures/machines.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { cacheFolder } from '../../scripts/cache-folder.mjs';
import { boot } from './boot.mjs';
import { prepareEmulator } from './emulator.mjs';
import { prepareKernel } from './kernel.mjs';
import { FIXTURES, SHAPES } from './shapes.mjs';
import { TapReader } from './tap-reader.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));
// Lines of what is told of a failed test.
const MOST_DETAILS = 60;
const BOOT_MS = 3 * 60_000;
const MINUTES = 40;
const MOST_BOOTS = 3;
const PACKAGES = {
  'qemu-system-x86_64': 'qemu-system-x86',
  busybox: 'busybox-static',
  cpio: 'cpio',
  xz: 'xz-utils',
  zstd: 'zstd',
  'mkfs.ext4': 'e2fsprogs',
  numactl: 'numactl',
  'lstopo-no-graphics': 'hwloc-nox',
};

function skip(why) {
  console.log(`test:vm: skipped: ${why}`);
  process.exit(0);
}

function installPackages() {
  const isThere = (program) => spawnSync('sh', ['-c', `command -v ${program}`]).status === 0;
  const missing = Object.keys(PACKAGES).filter((program) => !isThere(program));
  if (missing.length === 0) return;
  const names = missing.map((program) => PACKAGES[program]);
  if (process.getuid() !== 0 || !isThere('apt-get'))
    skip(`please install, as root: apt-get install ${names.join(' ')}`);
  console.log(`test:vm: installing ${names.join(' ')}`);
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  const install = ['install', '-y', '-q', '--no-install-recommends', ...names];
  const tryOnce = () => spawnSync('apt-get', install, { env, stdio: 'ignore' }).status === 0;
  if (tryOnce()) return;
  spawnSync('apt-get', ['update', '-q'], { env, stdio: 'ignore' });
  if (!tryOnce()) skip(`${names.join(' ')} cannot be installed here`);
}

const testFile = (name) => join('test/vm/guest', `${name}.test.mjs`);

const { values } = parseArgs({
  options: {
    shape: { type: 'string', multiple: true },
    test: { type: 'string', multiple: true },
    jobs: { type: 'string' },
    minutes: { type: 'string' },
    fixtures: { type: 'boolean' },
    list: { type: 'boolean' },
  },
});

function check(option, valid) {
  const unknown = values[option]?.find((name) => !valid.has(name));
  if (unknown === undefined) return;
  console.error(`test:vm: there is no ${option} ${unknown}; valid: ${[...valid].join(', ')}`);
  process.exit(2);
}

function chosenShapes() {
  if (values.list) {
    for (const { name, about } of SHAPES) console.log(`${name.padEnd(18)} ${about}`);
    process.exit(0);
  }
  check('shape', new Set(SHAPES.map(({ name }) => name)));
  check('test', new Set(SHAPES.flatMap(({ tests, afterReboot = [] }) => [...tests, ...afterReboot])));
  return SHAPES.filter(({ name }) => values.shape?.includes(name) ?? true);
}

function chosenNumber(option, usual) {
  const number = Number(values[option] ?? usual);
  if (Number.isInteger(number) && number >= 1) return number;
  console.error(`test:vm: --${option} is ${values[option]}; valid: a whole number of at least 1`);
  return process.exit(2);
}

/** Those of a machine's tests that are asked for and are there. */
function chosenTests(shape, names, say) {
  const asked = names.filter((name) => values.test?.includes(name) ?? true);
  const missing = asked.filter((name) => !existsSync(join(root, testFile(name))));
  for (const name of missing) say(`${shape.name}: left out, as it is not there: ${testFile(name)}`);
  return asked.filter((name) => !missing.includes(name));
}

function kernelOf(kind, cache) {
  try {
    return prepareKernel(cache, kind);
  } catch (error) {
    if (kind === 'stable') skip(`no kernel of Debian's can be had: ${error.message}`);
    return error;
  }
}

function makeDisk() {
  const disk = join(mkdtempSync(join(tmpdir(), 'numalign-disk-')), 'disk');
  writeFileSync(disk, '');
  truncateSync(disk, 64 << 20);
  spawnSync('mkfs.ext4', ['-q', disk]);
  return disk;
}

/** Boots, again where the machine dies; answers the tests and what is wrong. */
async function runTests(shape, files, kernel, options) {
  for (let attempt = 1; ; attempt++) {
    const console_ = join(options.logs, `${shape.name}${attempt > 1 ? `.${attempt}` : ''}.console.log`);
    const result = await bootOnce(shape, files, kernel, console_, options);
    if (!result.isDead || attempt === MOST_BOOTS) return result;
    options.say(`  ${result.wrong}: booted again`);
  }
}

async function bootOnce(shape, files, kernel, console_, { disk, say }) {
  const tests = [];
  const reader = new TapReader({
    told: (test) => {
      tests.push(test);
      const mark = test.isSkipped ? '-' : test.isOk ? '✓' : '✗';
      say(`  ${mark} ${test.name}`);
      if (!test.isOk) say(test.details.split('\n', MOST_DETAILS).join('\n').replace(/^/gm, '      '));
    },
    noted: (text) => say(`    ${text}`),
  });
  const command = ['node', '--test', '--test-reporter=tap', '--test-concurrency=1', ...files.map(testFile)];
  const { status, complaint, isTooLate, xml } = await boot(shape, kernel, emulator, command, {
    ...{ cwd: root, console: console_, bootMs: BOOT_MS, timeoutMs: minutes * 60_000, disk },
    onOutput: (text) => reader.add(text),
  });
  reader.end();
  if (values.fixtures && FIXTURES.includes(shape) && xml !== undefined)
    writeFileSync(join(root, 'test/fixtures/machines', `${shape.name}.xml`), xml);
  if (status === 0 && reader.count > 0) return { tests };
  if (status === undefined) {
    const why = complaint ? ` (${complaint.trim()})` : '';
    const what = isTooLate ? `no result in ${minutes} minutes` : 'the machine gave no result';
    return { tests, isDead: !isTooLate && reader.failed === 0, wrong: `${what}: see ${console_}${why}` };
  }
  return {
    tests,
    wrong: reader.failed > 0 ? `${reader.failed} tests failed` : `exit status ${status}: ${reader.rest}`,
  };
}

async function runShape(shape, kernel, logs, say) {
  if (kernel instanceof Error) {
    say(`${shape.name}: skipped: ${kernel.message}`);
    return { shape, tests: [], wrong: undefined, isSkipped: true };
  }
  say(`${shape.name} (${shape.about})`);
  const begin = Date.now();
  const disk = shape.hasDisk ? makeDisk() : undefined;
  const tests = [];
  try {
    const boots = [shape.tests, shape.afterReboot ?? []]
      .map((names) => chosenTests(shape, names, say))
      .filter((names) => names.length > 0);
    let wrong;
    for (const files of boots) {
      if (wrong !== undefined) break;
      const result = await runTests(shape, files, kernel, { logs, disk, say });
      tests.push(...result.tests);
      wrong = result.wrong;
    }
    return { shape, tests, wrong, seconds: Math.round((Date.now() - begin) / 1000) };
  } finally {
    if (disk) rmSync(join(disk, '..'), { recursive: true });
  }
}

const shapes = chosenShapes();
if (process.arch !== 'x64') skip('the machines are x86-64, and emulating them elsewhere was never tried');
installPackages();
const cache = cacheFolder('numalign-vm');
const logs = join(root, '.cache/vm');
mkdirSync(logs, { recursive: true });
// Most of what is tested in a machine keeps one CPU busy.
const jobs = Math.min(chosenNumber('jobs', Math.min(2, availableParallelism())), shapes.length);
const kernels = new Map(
  [...new Set(shapes.map(({ kernel = 'stable' }) => kernel))].map((kind) => [kind, kernelOf(kind, cache)]),
);
const emulator = prepareEmulator(cache);
if (emulator.complaint)
  console.log(`test:vm: with the QEMU that is installed, in which a machine may die: ${emulator.complaint}`);
const minutes = chosenNumber('minutes', MINUTES);
const results = [];
const waiting = [...shapes];

// One machine after the other. With several of these what one says comes when it has ended.
async function work() {
  for (let shape = waiting.shift(); shape; shape = waiting.shift()) {
    const said = [];
    const say = (text) => (jobs === 1 ? console.log(text) : said.push(text));
    results.push(await runShape(shape, kernels.get(shape.kernel ?? 'stable'), logs, say));
    if (said.length > 0) console.log(said.join('\n'));
  }
}
await Promise.all(Array.from({ length: jobs }, work));
console.log('');
for (const { shape, tests, wrong, seconds, isSkipped } of results) {
  const leftOut = tests.filter((each) => each.isSkipped).length;
  const passed = tests.filter(({ isOk }) => isOk).length - leftOut;
  const without = leftOut > 0 ? `, ${leftOut} skipped` : '';
  const said = isSkipped ? 'skipped' : `${passed} of ${tests.length} tests passed${without}, in ${seconds} s`;
  console.log(`${shape.name.padEnd(18)} ${said}${wrong === undefined ? '' : `; ${wrong}`}`);
}
process.exitCode = results.some(({ wrong }) => wrong !== undefined) ? 1 : 0;
