// Runs what `npm test` runs, one suite after the other, and closes with one line that adds them up. Arguments go to vitest.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const reports = `${root}.cache/tests`;
mkdirSync(reports, { recursive: true });

let [passed, failed, skipped] = [0, 0, 0];
const failures = [];

function run(command, args) {
  return spawnSync(command, args, { cwd: root, stdio: 'inherit' }).status === 0;
}

function vitest() {
  const report = `${reports}/vitest.json`;
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${report}`];
  const ok = run(process.execPath, ['node_modules/vitest/vitest.mjs', 'run', ...reporters, ...process.argv.slice(2)]);
  const { numPassedTests, numFailedTests, numPendingTests, testResults } = JSON.parse(readFileSync(report, 'utf8'));
  passed += numPassedTests;
  skipped += numPendingTests;
  // A file that could not even be loaded has no failed test, yet it has failed.
  failed += Math.max(numFailedTests, ok ? 0 : 1);
  for (const { name, message, assertionResults } of testResults) {
    if (message) failures.push(`${name}: ${message}`);
    for (const { status, fullName, failureMessages } of assertionResults) {
      if (status === 'failed') failures.push(`${fullName}\n${failureMessages.join('\n')}`);
    }
  }
}

function core() {
  const hasTools = existsSync('/usr/include/gtest/gtest.h') && spawnSync('cmake', ['--version']).status === 0;
  if (!hasTools) {
    console.log('core tests left out; for them, as root: apt-get install cmake libgtest-dev');
    return;
  }
  console.log('\nThe core without Node, with address and undefined behaviour sanitizers:');
  if (run('bash', ['scripts/core-tests.sh', 'address'])) passed += 1;
  else {
    failed += 1;
    failures.push('The core without Node: see above');
  }
}

vitest();
if (process.argv.length === 2) core();
// Once more at the very end: whoever keeps only the last lines of a log still learns what failed.
for (const failure of failures) console.log(`\nFAILED ${failure}`);
console.log(`\n${passed} passed, ${failed} failed${skipped ? `, ${skipped} skipped` : ''}`);
process.exit(failed === 0 ? 0 : 1);
