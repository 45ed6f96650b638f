// Planted bugs: do the tests in virtual machines find the bugs that they exist for? Each bug goes
// into a copy of the package; the test named with it must then fail.
//
//   npm run test:vm:planted                   all of them
//   npm run test:vm:planted -- hotplug …      those that these files of tests find
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { copyPackage, plant, run } from '../support/planting.mjs';
import { BUGS } from './planted-bugs.mjs';

const asked = process.argv.slice(2);
const bugs = BUGS.filter(({ test }) => asked.length === 0 || asked.includes(test));
let missed = 0;
let skipped;
for (const { name, shape = '4-nodes', test, find, ...bug } of bugs) {
  const folder = mkdtempSync(join(tmpdir(), 'numalign-planted-'));
  try {
    copyPackage(folder, 'test', 'packages');
    plant(folder, bug);
    // Code with such a bug may wait for ever.
    const chosen = ['--shape', shape, '--test', test, '--minutes', '10'];
    const { status, stdout, stderr } = run(process.execPath, ['test/vm/run.mjs', ...chosen], { cwd: folder });
    skipped = /^test:vm: skipped.*$/m.exec(stdout)?.[0];
    if (skipped) break;
    const isFound = status === 1 && stdout.includes(`✗ ${find}`);
    if (!isFound) missed++;
    console.log(`${isFound ? 'found' : 'MISSED'}: ${name}\n    ${isFound ? find : `${stdout}${stderr}`}`);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
console.log(skipped ?? `${bugs.length - missed} of ${bugs.length} found`);
process.exit(missed > 0 ? 1 : 0);
