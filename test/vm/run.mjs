// npm run test:vm [-- --shape NAME]… [--test NAME]… [--jobs N] [--minutes N] Boots each machine of
// shapes.mjs once and runs its tests there in one batch, for at most N minutes. --changed-since
// REVISION: only the machines that changes since then concern, and some others in rotation. --list:
// the machines. --fixtures: also writes what lstopo sees on each to test/fixtures/machines.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { availableParallelism, constants, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import {
  describeComponents,
  prepareComponents,
} from '../../packages/kubernetes/test/containers/components.mjs';
import { cacheFolder } from '../../scripts/cache-folder.mjs';
import { aptCommand, installPackages, root, works } from '../../scripts/steps.mjs';
import { isLong } from '../support/budget.mjs';
import { boot } from './boot.mjs';
import { changedFiles, chooseShapes, commitCount } from './choice.mjs';
import { prepareDebian } from './debian-packages.mjs';
import { prepareEmulator } from './emulator.mjs';
import { prepareIrqbalance } from './irqbalance.mjs';
import { prepareKernel } from './kernel.mjs';
import { FIXTURES, SHAPES } from './shapes.mjs';
import { whyNoTap } from './tap.mjs';
import { TapReader } from './tap-reader.mjs';

// The number of lines that are printed of a failed test.
const MOST_DETAILS = 60;
/** A test that takes at least this long is printed with its time. */
const SLOW_SECONDS = 10;
// A boot takes ten seconds on a quiet machine. The emulator may hang in the kernel's first seconds,
// several times in a row.
const BOOT_MS = 90_000;
const MOST_HANGS = 4;
// The slowest test takes a minute on a machine that is busy.
const STILL_MS = (isLong ? 30 : 5) * 60_000;
const MINUTES = isLong ? 90 : 30;
const MOST_BOOTS = 3;
/** The number of machines that are booted though no change concerns them. */
const IN_ROTATION = 2;
/** This many machines take a third of CI's time. */
const MOST_AFTER_CHANGE = 8;
const PACKAGES = Object.entries({
  'qemu-system-x86_64': 'qemu-system-x86',
  cpio: 'cpio',
  xz: 'xz-utils',
  zstd: 'zstd',
  'mkfs.ext4': 'e2fsprogs',
  numactl: 'numactl',
  'lstopo-no-graphics': 'hwloc-nox',
  'systemd-analyze': 'systemd',
}).map(([program, name]) => ({ name, present: () => works('sh', ['-c', `command -v ${program}`]) }));

const DEBOOTSTRAP = [{ name: 'debootstrap', present: () => existsSync('/usr/sbin/debootstrap') }];
/** The packages of a Debian that is not the host's. */
const DEBIAN = ['hwloc-nox', 'libstdc++6', 'numactl', 'systemd-sysv'];

function skip(why) {
  console.log(`test:vm: skipped: ${why}`);
  process.exit(0);
}

function prepareSystem() {
  let names;
  try {
    names = installPackages(PACKAGES, (text) => console.log(`test:vm: ${text}`));
  } catch (error) {
    skip(`system packages cannot be installed: ${error.message}`);
  }
  if (names.length > 0) skip(`please install, as root: ${aptCommand(names)}`);
}

const testFile = (name) => join('test/vm/guest', `${name}.test.mjs`);

const { values } = parseArgs({
  options: {
    shape: { type: 'string', multiple: true },
    test: { type: 'string', multiple: true },
    jobs: { type: 'string' },
    minutes: { type: 'string' },
    'changed-since': { type: 'string' },
    fixtures: { type: 'boolean' },
    list: { type: 'boolean' },
  },
});

function refuse(why, status = 2) {
  console.error(`test:vm: ${why}`);
  process.exit(status);
}

function check(option, valid) {
  const unknown = values[option]?.find((name) => !valid.has(name));
  if (unknown !== undefined) refuse(`there is no ${option} ${unknown}; valid: ${[...valid].join(', ')}`);
}

const namesOf = (shapes) =>
  new Set(shapes.flatMap(({ tests, afterReboot = [] }) => [...tests, ...afterReboot]));

/** The selected tests of a machine, by boot. */
function chosenBoots({ tests, afterReboot = [] }) {
  const isAsked = (name) => values.test?.includes(name) ?? true;
  return [tests, afterReboot].map((names) => names.filter(isAsked)).filter((names) => names.length > 0);
}

/** All machines, or those that --changed-since leaves; all if git cannot compare. */
function inRotation() {
  const since = values['changed-since'];
  if (since === undefined) return SHAPES;
  if (values.shape || values.test)
    refuse('--changed-since chooses the machines; valid: without --shape and --test');
  try {
    const usual = SHAPES.filter(({ isRare }) => !isRare);
    const shapes = chooseShapes(usual, changedFiles(since), commitCount(), IN_ROTATION, MOST_AFTER_CHANGE);
    const names = shapes.map(({ name }) => name);
    console.log(
      `test:vm: ${names.length} of ${SHAPES.length} machines: ${names.join(', ')}; all: npm run test:vm`,
    );
    return shapes;
  } catch (error) {
    console.log(`test:vm: all machines, since the changes are unknown: ${error.message}`);
    return SHAPES;
  }
}

function chosenShapes() {
  if (values.list) {
    for (const { name, about } of SHAPES) console.log(`${name.padEnd(18)} ${about}`);
    process.exit(0);
  }
  check('shape', new Set(SHAPES.map(({ name }) => name)));
  check('test', namesOf(SHAPES));
  const named = inRotation().filter(({ name }) => values.shape?.includes(name) ?? true);
  const shapes = named.filter((shape) => chosenBoots(shape).length > 0);
  if (shapes.length === 0)
    refuse(
      `${values.shape.join(' and ')} have no test ${values.test.join(', ')}; valid: ${[...namesOf(named)].join(', ')}`,
    );
  const files = shapes.flatMap(chosenBoots).flat().map(testFile);
  const missing = files.find((file) => !existsSync(join(root, file)));
  if (missing !== undefined) refuse(`${missing}, which test/vm/shapes.mjs lists, is not there`, 1);
  return shapes;
}

function chosenNumber(option, usual) {
  const number = Number(values[option] ?? usual);
  if (!Number.isInteger(number) || number < 1)
    refuse(`--${option} is ${values[option]}; valid: a whole number of at least 1`);
  return number;
}

function kernelOf(kind) {
  try {
    return prepareKernel(kind, cache, logs);
  } catch (error) {
    if (kind === 'stable') skip(`no kernel of Debian's can be had: ${error.message}`);
    return error;
  }
}

function makeDisk({ name }) {
  const disk = join(temporary, `${name}.disk`);
  writeFileSync(disk, '');
  truncateSync(disk, 64 << 20);
  spawnSync('mkfs.ext4', ['-q', disk]);
  return disk;
}

/** Boots, again if the machine hangs or dies; returns the tests and the problem. */
async function runTests(shape, files, kernel, options) {
  let hangs = 0;
  for (let attempt = 1; ; attempt++) {
    const console_ = join(logs, `${shape.name}${attempt > 1 ? `.${attempt}` : ''}.console.log`);
    const result = await bootOnce(shape, files, kernel, console_, options);
    // A machine that has not started yet says nothing about the package.
    if (result.isHung) hangs++;
    if (!result.isDead || hangs > MOST_HANGS || attempt - hangs === MOST_BOOTS) return result;
    options.say(`  ${result.wrong}: booted again`);
  }
}

function sayFailure({ name, seconds, details }, say, where) {
  say(`${where}✗ ${name} (${Math.round(seconds)} s)`);
  say(details.split('\n', MOST_DETAILS).join('\n').replace(/^/gm, '      '));
}

async function bootOnce(shape, files, kernel, console_, { disk, system, variables, say }) {
  const tests = [];
  const reader = new TapReader({
    onTest: (test) => {
      tests.push(test);
      if (!test.isOk) return sayFailure(test, say, '  ');
      const mark = test.isSkipped ? '-' : '✓';
      say(`  ${mark} ${test.name}${test.seconds < SLOW_SECONDS ? '' : ` (${Math.round(test.seconds)} s)`}`);
    },
    onNote: (text) => say(`    ${text}`),
  });
  const command = ['test/vm/guest-tests.sh', ...files.map(testFile)];
  const { status, complaint, hasStarted, isTooLate, still, xml } = await boot(
    ...[shape, kernel, emulator, command],
    {
      ...{ cwd: root, console: console_, temporary, disk, system, variables },
      ...{ bootMs: shape.bootMs ?? BOOT_MS, stillMs: STILL_MS, timeoutMs: minutes * 60_000 },
      onOutput: (text) => reader.add(text),
    },
  );
  reader.end();
  if (values.fixtures && FIXTURES.includes(shape) && xml !== undefined)
    writeFileSync(join(root, 'test/fixtures/machines', `${shape.name}.xml`), xml);
  if (status === 0 && reader.count > 0) return { tests };
  if (status === undefined) {
    const why = complaint ? ` (${complaint.trim()})` : '';
    const what = isTooLate ? `no result in ${minutes} minutes` : 'the machine gave no result';
    if (still !== undefined) say(still.trimEnd().replace(/^/gm, '      '));
    // Threads that wait for each other are the package's fault. A thread in an uninterruptible
    // wait, or a kernel that does not answer, is the machine's.
    const isItself = still === undefined || still === '' || /^\d+ \(.*\) D /m.test(still);
    const isDead = !isTooLate && isItself && reader.failed === 0;
    return { tests, isDead, isHung: isDead && !hasStarted, wrong: `${what}: see ${console_}${why}` };
  }
  return {
    tests,
    wrong: reader.failed > 0 ? `${reader.failed} tests failed` : `exit status ${status}: ${reader.rest}`,
  };
}

/** The programs that the host must have for a machine. Throws if one is missing. */
function prepareHost({ hasContainers, hasTap, hasIrqbalance, release }) {
  if (hasContainers) describeComponents(prepareComponents());
  const why = hasTap ? whyNoTap() : undefined;
  if (why !== undefined) throw new Error(why);
  if (release !== undefined) installPackages(DEBOOTSTRAP, (text) => console.log(`test:vm: ${text}`));
  return {
    variables: hasIrqbalance ? { NUMALIGN_IRQBALANCE: prepareIrqbalance(cache) } : {},
    system: release === undefined ? undefined : prepareDebian(cache, release, DEBIAN),
  };
}

/** Variables for its tests and the folder of its system, or why a machine is skipped. */
function preparationOf(shape, kernel) {
  if (kernel instanceof Error) return { why: kernel.message };
  try {
    return prepareHost(shape);
  } catch (error) {
    return { why: `the programs of its tests are missing: ${error.message}` };
  }
}

async function runShape(shape, kernel, say) {
  const { why, variables, system } = preparationOf(shape, kernel);
  if (why !== undefined) {
    say(`${shape.name}: skipped: ${why}`);
    return { shape, tests: [], wrong: undefined, isSkipped: true };
  }
  say(`${shape.name} (${shape.about})`);
  const begin = Date.now();
  const disk = shape.hasDisk ? makeDisk(shape) : undefined;
  const tests = [];
  let wrong;
  for (const files of chosenBoots(shape)) {
    if (wrong !== undefined) break;
    const result = await runTests(shape, files, kernel, { disk, system, variables, say });
    tests.push(...result.tests);
    wrong = result.wrong;
  }
  if (tests.every(({ isSkipped }) => isSkipped)) wrong ??= 'no test ran';
  return { shape, tests, wrong, seconds: Math.round((Date.now() - begin) / 1000) };
}

const shapes = chosenShapes();
if (process.arch !== 'x64') skip('the machines are x86-64, and emulating them elsewhere was never tried');
prepareSystem();
const cache = cacheFolder('numalign-vm');
const logs = join(root, '.cache/vm');
mkdirSync(logs, { recursive: true });
// Most tests in a machine keep one CPU busy.
const jobs = Math.min(chosenNumber('jobs', Math.min(2, availableParallelism())), shapes.length);
const kernels = new Map(
  [...new Set(shapes.map(({ kernel = 'stable' }) => kernel))].map((kind) => [kind, kernelOf(kind)]),
);
const emulator = prepareEmulator(cache);
if (emulator.complaint)
  console.log(`test:vm: with the QEMU that is installed, in which a machine may die: ${emulator.complaint}`);
const minutes = chosenNumber('minutes', MINUTES);
const temporary = mkdtempSync(join(tmpdir(), 'numalign-vm-'));
process.on('exit', () => rmSync(temporary, { recursive: true, force: true, maxRetries: 3 }));
// A signal alone would leave the machines running.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'])
  process.on(signal, () => process.exit(128 + constants.signals[signal]));
const results = [];
const waiting = [...shapes];

// One machine after the other. With several in parallel, the output of one comes when it has ended.
async function work() {
  for (let shape = waiting.shift(); shape; shape = waiting.shift()) {
    const said = [];
    const say = (text) => (jobs === 1 ? console.log(text) : said.push(text));
    results.push(await runShape(shape, kernels.get(shape.kernel ?? 'stable'), say));
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
// Repeated at the end: the output of the machines is long, and some readers see only the last of
// it.
for (const { shape, tests } of results)
  for (const test of tests.filter(({ isOk }) => !isOk)) sayFailure(test, console.log, `${shape.name}: `);
process.exitCode = results.some(({ wrong }) => wrong !== undefined) ? 1 : 0;
