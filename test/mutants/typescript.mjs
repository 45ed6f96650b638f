// Mutants of TypeScript by StrykerJS: in a copy of the package, since it writes all mutants of a
// file into the file.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { JUDGES, MACHINE_JUDGES } from '../../rooms.mjs';
import { fail, root, say } from '../../scripts/steps.mjs';
import { copyPackage } from '../support/planting.mjs';
import { KILLED, LIVED } from './progress.mjs';
import { isSampled, keyOf } from './sample.mjs';
import { judgeInMachines } from './vm.mjs';

// Not a dev dependency: 65 MB that few contributors use. The last that runs on Node 20.
const VERSION = '9.6.1';
const PACKAGES = [`@stryker-mutator/core@${VERSION}`, `@stryker-mutator/vitest-runner@${VERSION}`];
const CACHE = join(root, '.cache/mutants');
const TOOL = join(CACHE, `stryker-${VERSION}`);
const CORE = join(TOOL, 'node_modules/@stryker-mutator/core');
const BIN = join(CORE, 'bin/stryker.js');

const [TIMEOUT_FACTOR, TIMEOUT_MS] = [1.5, 15_000];
// A failure that comes later may be one of waiting.
const SLOW_MS = 8_000;

function installTool() {
  if (existsSync(BIN)) return;
  say(`installing StrykerJS ${VERSION} into ${TOOL}`);
  mkdirSync(TOOL, { recursive: true });
  writeFileSync(join(TOOL, 'package.json'), '{"private":true}\n');
  // Its peers are the project's own: vitest is found in the folders above.
  const options = ['--no-audit', '--no-fund', '--ignore-scripts', '--legacy-peer-deps'];
  const { status } = spawnSync('npm', ['install', ...options, ...PACKAGES], { cwd: TOOL, stdio: 'inherit' });
  if (status !== 0) fail('npm could not install StrykerJS');
  for (const edit of [ONE_RUNNER, TIME_LIMIT]) editTool(edit);
}

// StrykerJS makes a test runner of each checker that is done. But the tests share this machine's
// CPUs and masks.
const ONE_RUNNER = {
  file: 'dist/src/concurrent/concurrency-token-provider.js',
  before: 'this.testRunnerTokenSubject.next(this.tick());\n            }',
  after: '}',
};

// A machine that is busy must not pass for a killed mutant. What fails only after some time, or takes
// longer than the tests took before all mutants, is compared with the same tests without the mutant:
// if they fail too, or are not much quicker, it is judged once more, in the time that follows from
// what they take now.
const TIME_LIMIT = {
  file: 'dist/src/test-runner/timeout-decorator.js',
  before: 'const result = await this.run(options, () => super.mutantRun(options));',
  after: `const timed = async (run) => {
            const beganMs = performance.now();
            return { result: await run(), ms: performance.now() - beganMs };
        };
        const judge = (timeout) => timed(() => this.run({ ...options, timeout }, () => super.mutantRun(options)));
        let { result, ms } = await judge(options.timeout);
        const isExpired = result === ExpirableTask.TimeoutExpired;
        if (isExpired || (result.status === 'killed' && ms > ${SLOW_MS})) {
            const testFilter = isExpired ? options.testFilter : result.killedBy;
            const activeMutant = { ...options.activeMutant, id: 'none' };
            const plain = await timed(() => super.mutantRun({ ...options, testFilter, activeMutant }));
            const limit = Math.max(options.timeout, ${TIMEOUT_FACTOR} * plain.ms + ${TIMEOUT_MS});
            if (isExpired || plain.result.status !== 'survived' || plain.ms > ms / 3)
                ({ result } = await judge(limit));
        }`,
};

function editTool({ file, before, after }) {
  const path = join(CORE, file);
  const code = readFileSync(path, 'utf8');
  if (code.split(before).length !== 2) fail(`${path} is not the one that is known here`);
  writeFileSync(
    path,
    code.replace(before, () => after),
  );
}

const configOf = (mutate, report) => ({
  mutate,
  inPlace: true,
  // With the mutants: what a test starts runs dist. Tests of packages run their lib/.
  ...(mutate[0].startsWith('lib/') && { buildCommand: 'node node_modules/rolldown/bin/cli.mjs -c' }),
  testRunner: 'vitest',
  plugins: ['@stryker-mutator/vitest-runner', './test/mutants/sample.mjs', './test/mutants/progress.mjs'],
  checkers: ['sample'],
  vitest: { configFile: 'test/mutants/vitest.config.ts', related: false },
  coverageAnalysis: 'perTest',
  // What runs once when a module is loaded would ask for all tests.
  ignoreStatic: true,
  // Messages are not held to the word.
  mutator: { excludedMutations: ['StringLiteral'] },
  concurrency: 1,
  timeoutMS: TIMEOUT_MS,
  timeoutFactor: TIMEOUT_FACTOR,
  dryRunTimeoutMinutes: 30,
  allowEmpty: true,
  reporters: ['json', 'judged'],
  jsonReporter: { fileName: report },
  tempDirName: '.stryker',
  disableTypeChecks: false,
});

function readReport(path, sample) {
  const { files } = JSON.parse(readFileSync(path, 'utf8'));
  const all = Object.entries(files).flatMap(([file, { source, mutants }]) =>
    mutants.map((mutant) => ({ ...mutant, file, source })),
  );
  const judged = all.filter(
    (each) => [...KILLED, ...LIVED].includes(each.status) && isSampled(keyOf(each.file, each), sample),
  );
  const survivors = judged
    .filter(({ status }) => LIVED.includes(status))
    .map(({ id, file, source, location, replacement, status }) => ({
      id,
      at: `${file}:${location.start.line}:${location.start.column}`,
      before: textAt(source, location),
      after: replacement,
      note: status === 'NoCoverage' ? 'no test runs it' : undefined,
    }));
  return { all: all.filter(({ status }) => status !== 'Ignored').length, judged: judged.length, survivors };
}

function textAt(source, { start, end }) {
  const lines = source.split('\n').slice(start.line - 1, end.line);
  lines[lines.length - 1] = lines.at(-1).slice(0, end.column - 1);
  lines[0] = lines[0].slice(start.column - 1);
  return lines.join('\n');
}

const listOf = (lists, path) =>
  Object.entries(lists).find(([folder]) => path === folder || path.startsWith(`${folder}/`))?.[1];

/**
 * Judges the mutants of one folder or file of lib/ or a package; the survivors also in virtual
 * machines, on request.
 */
export async function judgeTypeScript(path, sample, inMachines) {
  const judges = listOf(JUDGES, path);
  if (!judges)
    fail(`rooms.mjs lists no judges for ${path}: there are some for ${Object.keys(JUDGES).join(', ')}`);
  installTool();
  const name = path.replaceAll(/\W+/g, '-');
  // Of its own: several folders can be judged at once.
  const work = join(CACHE, `work-${name}`);
  rmSync(work, { recursive: true, force: true });
  mkdirSync(work, { recursive: true });
  copyPackage(work, 'test', 'packages');
  const report = join(CACHE, `${name}.json`);
  rmSync(report, { force: true });
  const mutate = [path.endsWith('.ts') ? path : `${path}/**/*.ts`];
  writeFileSync(join(work, 'stryker.config.json'), JSON.stringify(configOf(mutate, report)));
  const env = {
    ...process.env,
    NUMALIGN_MUTANTS_JUDGES: JSON.stringify(judges),
    NUMALIGN_MUTANTS_SAMPLE: JSON.stringify(sample),
  };
  spawnSync(process.execPath, [BIN, 'run'], { cwd: work, env, stdio: 'inherit' });
  if (!existsSync(report)) fail('StrykerJS ended without its report');
  const found = readReport(report, sample);
  const tests = listOf(MACHINE_JUDGES, path);
  if (!inMachines || !tests || found.survivors.length === 0) return found;
  return { ...found, survivors: await judgeInMachines(work, found.survivors, tests) };
}
