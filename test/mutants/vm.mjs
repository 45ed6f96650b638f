// Mutants of code that needs cgroup v2 or several NUMA nodes: a virtual machine for each, since a
// failing test may leave anything behind.
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { cacheFolder } from '../../scripts/cache-folder.mjs';
import { fail, say } from '../../scripts/steps.mjs';
import { boot } from '../vm/boot.mjs';
import { prepareEmulator } from '../vm/emulator.mjs';
import { prepareKernel } from '../vm/kernel.mjs';
import { SHAPES } from '../vm/shapes.mjs';
import { TapReader } from '../vm/tap-reader.mjs';

const SHAPE = SHAPES.find(({ name }) => name === '4-nodes');
// Emulated, one keeps about one CPU busy.
const JOBS = 2;
const BOOT_MS = 90_000;
const TRIES = 4;

const fileOf = (name) => `test/vm/guest/${name}.test.mjs`;

/**
 * Runs files of tests in a machine of their own, with a mutant or none. Returns the first test that
 * fails, undefined if none does; a test that does not end is a failure too. Without a mutant also
 * the mutants that each file runs.
 */
async function runTests(tests, mutant, { work, kernel, emulator, temporary, timeoutMs }) {
  const folder = mkdtempSync(join(temporary, 'run-'));
  const commands = tests.map((name) => {
    const looks = `NODE_OPTIONS=--import=./test/mutants/child.mjs NUMALIGN_MUTANTS_COVERAGE=/tmp/${name}.covered`;
    const environment = mutant === undefined ? looks : `__STRYKER_ACTIVE_MUTANT__=${mutant}`;
    const test = `env ${environment} node --test --test-reporter=tap --test-concurrency=1 ${fileOf(name)}`;
    return mutant === undefined ? `${test} && cp /tmp/${name}.covered /job` : test;
  });
  for (let attempt = 1; ; attempt++) {
    const abort = new AbortController();
    let failed;
    const reader = new TapReader({
      onTest: ({ name, isOk }) => {
        if (isOk) return;
        failed ??= name;
        abort.abort();
      },
      onNote: () => {},
    });
    const { status, isTooLate } = await boot(SHAPE, kernel, emulator, ['sh', '-c', commands.join(' && ')], {
      ...{ cwd: work, console: join(folder, 'console.log'), temporary: folder, bootMs: BOOT_MS, timeoutMs },
      signal: abort.signal,
      onOutput: (text) => reader.add(text),
    });
    reader.end();
    if (failed !== undefined || status === 0) return { failed, folder };
    if (isTooLate) return { failed: 'no end', folder };
    if (status !== undefined) return { failed: `exit status ${status}`, folder };
    if (attempt === TRIES) fail(`a virtual machine did not start, or died, ${TRIES} times`);
  }
}

/**
 * The mutants that no test in a virtual machine notices. `work`: the package, with all mutants in
 * dist.
 */
export async function judgeInMachines(work, mutants, tests) {
  const cache = cacheFolder('numalign-vm');
  const logs = join(work, '.cache/vm');
  mkdirSync(logs, { recursive: true });
  const temporary = mkdtempSync(join(tmpdir(), 'numalign-mutants-'));
  process.on('exit', () => rmSync(temporary, { recursive: true, force: true, maxRetries: 3 }));
  const host = {
    work,
    temporary,
    kernel: prepareKernel('stable', cache, logs),
    emulator: prepareEmulator(cache),
  };
  const begin = Date.now();
  const { failed, folder } = await runTests(tests, undefined, { ...host, timeoutMs: 40 * 60_000 });
  if (failed !== undefined) fail(`without a mutant this fails in the virtual machine: ${failed}`);
  // Some machines are slower.
  const timeoutMs = 3 * (Date.now() - begin);
  const covered = readCoverage(folder, tests);
  const waiting = mutants.filter(({ id }) => tests.some((name) => covered.get(name).has(id)));
  say(`${waiting.length} of ${mutants.length} mutants are run in virtual machines`);
  const killed = new Set();
  const judge = async () => {
    for (let mutant = waiting.shift(); mutant; mutant = waiting.shift()) {
      const { id, at } = mutant;
      const chosen = tests.filter((name) => covered.get(name).has(id));
      const { failed } = await runTests(chosen, id, { ...host, timeoutMs });
      if (failed !== undefined) killed.add(mutant);
      say(`${at}: ${failed === undefined ? 'lives' : `killed by: ${failed}`}`);
    }
  };
  await Promise.all(Array.from({ length: JOBS }, judge));
  return mutants.filter((mutant) => !killed.has(mutant));
}

function readCoverage(folder, tests) {
  const job = readdirSync(folder).find((name) => name.startsWith('job-'));
  const linesOf = (name) => readFileSync(join(folder, job, `${name}.covered`), 'utf8').split('\n');
  return new Map(tests.map((name) => [name, new Set(linesOf(name))]));
}
