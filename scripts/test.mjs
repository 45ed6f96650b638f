// Runs the tests of `npm test`, and prints their sums in the last line. Arguments go to vitest.
import { chmodSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { whyNotPlaceable } from '../test/support/usable-cpus.mjs';
import { runVitest } from './run-vitest.mjs';

let [passed, failed, skipped] = [0, 0, 0];
const failures = [];

async function vitest(name, args, options) {
  const result = await runVitest(name, args, options);
  passed += result.passed;
  failed += result.failed;
  skipped += result.skipped;
  failures.push(...result.failures);
}

// Tests must leave the machine as they found it. In the machine's temporary folder others make and
// leave folders meanwhile, so that the tests get one of their own.
const temporary = mkdtempSync(join(tmpdir(), 'numalign-'));
chmodSync(temporary, 0o1777);
process.env.TMPDIR = temporary;

const args = process.argv.slice(2);
const projects = (names, { part, nice } = {}) => {
  const options = names.flatMap((name) => ['--project', name]);
  if (part) options.push(`--shard=${part}/2`);
  return vitest(`${names[0]}${part ?? ''}`, options, { nice });
};
// Seven things at a time: what touches the machine one file after the other, which takes longest, and
// beside it what does not, and what waits for processes most of the time. What only computes takes
// the rest of the CPUs.
if (args.length > 0) await vitest('vitest', args);
else
  await Promise.all([
    projects(['machine']),
    projects(['folders', 'process'], { part: 1, nice: 10 }),
    projects(['folders', 'process'], { part: 2, nice: 10 }),
    projects(['agents'], { part: 1, nice: 10 }),
    projects(['agents'], { part: 2, nice: 10 }),
    projects(['kubernetes'], { nice: 10 }),
    projects(['nothing', 'modules'], { nice: 15 }),
  ]);
const leftovers = readdirSync(temporary).filter((name) => name.startsWith('numalign-'));
if (leftovers.length > 0) {
  failed++;
  failures.push(`tests leave these folders in TMPDIR: ${leftovers.join(', ')}`);
}
try {
  rmSync(temporary, { recursive: true, force: true });
} catch (error) {
  // Such as a mount that a failed test leaves.
  failed++;
  failures.push(`what tests leave in TMPDIR cannot be removed: ${error.message}`);
}
// Repeated at the very end, so that the last lines of a log show what failed.
for (const failure of failures) console.log(`\nFAILED ${failure}`);
const why = whyNotPlaceable();
if (why) console.log(`\nleft out: all tests of the projects machine and folders: each ${why}`);
console.log(`\n${passed} passed, ${failed} failed${skipped ? `, ${skipped} skipped` : ''}`);
process.exit(failed === 0 ? 0 : 1);
