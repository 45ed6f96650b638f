// Runs what `npm test` runs, the core's tests beside the others, and closes with one line that adds
// them up. Arguments go to vitest.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { whyNotPlaceable } from '../test/support/usable-cpus.mjs';
import { runVitest } from './run-vitest.mjs';
import { root } from './steps.mjs';

let [passed, failed, skipped] = [0, 0, 0];
const failures = [];

async function vitest(name, args) {
  const result = await runVitest(name, args);
  passed += result.passed;
  failed += result.failed;
  skipped += result.skipped;
  failures.push(...result.failures);
}

// Answers what is to be said of it when it has ended.
async function core() {
  const hasTools = existsSync('/usr/include/gtest/gtest.h') && spawnSync('cmake', ['--version']).status === 0;
  if (!hasTools) return 'core tests left out; for them, as root: apt-get install cmake libgtest-dev';
  const child = spawn('bash', ['scripts/core-tests.sh', 'address'], {
    cwd: root,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const output = [];
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => output.push(data));
  const [status] = await once(child, 'close');
  const said = `The core without Node, with address and undefined behaviour sanitizers:\n${Buffer.concat(output)}`;
  if (status === 0) passed += 1;
  else {
    failed += 1;
    failures.push(said);
  }
  return said;
}

const args = process.argv.slice(2);
const project = (...names) =>
  vitest(
    names[0],
    names.flatMap((name) => ['--project', name]),
  );
// Three things at a time: what touches the machine one file after the other, and beside it what does
// not, and what waits for processes most of the time.
const beside = async () => {
  await project('decisions', 'visits');
  return core();
};
const [said] =
  args.length > 0
    ? ['', await vitest('vitest', args)]
    : await Promise.all([beside(), project('machine'), project('processes')]);
console.log(`\n${said}`);
// Once more at the very end: whoever keeps only the last lines of a log still learns what failed.
for (const failure of failures) console.log(`\nFAILED ${failure}`);
const why = whyNotPlaceable();
if (why) console.log(`\nleft out: all tests of the projects machine and visits: each ${why}`);
console.log(`\n${passed} passed, ${failed} failed${skipped ? `, ${skipped} skipped` : ''}`);
process.exit(failed === 0 ? 0 : 1);
