// Planted bugs: does torture find the bugs that it exists for? Each bug goes into a copy of the
// package by exact replacement; the check named with it must then end with 1.
//
//   npm run torture:planted -- --seconds N --seed S
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { copyPackage, plant, run } from '../support/planting.mjs';
import { freshSeed, parseOptions } from './options.mjs';
import { BUGS } from './planted-bugs.mjs';

// `from`: the number of the first bug, from 0.
const given = parseOptions('test/torture/planted.mjs', { seconds: 30, seed: freshSeed(), from: 0 });

let missed = 0;
for (const bug of BUGS.slice(given.from)) {
  const folder = mkdtempSync(join(tmpdir(), 'numalign-planted-'));
  try {
    // For agents of other users.
    chmodSync(folder, 0o755);
    copyPackage(folder);
    for (const part of [bug, ...(bug.also ?? [])]) plant(folder, part);
    const script = fileURLToPath(new URL(bug.find, import.meta.url));
    const seconds = ['torture.mjs', 'fuzz-state.mjs'].includes(bug.find)
      ? ['--seconds', String(bug.seconds ?? given.seconds)]
      : [];
    const seed = bug.find === 'lost-writes.mjs' ? [] : ['--seed', String(given.seed)];
    const options = [...(bug.options ?? []), ...seconds, ...seed];
    const begun = Date.now();
    const { status, stdout, stderr } = run(process.execPath, [script, ...options, '--package', folder]);
    const took = ((Date.now() - begun) / 1000).toFixed(1);
    const first = /^VIOLATION (.*)$/m.exec(stdout)?.[1];
    const found = status === 1 && first !== undefined;
    if (!found) missed++;
    console.log(
      `${found ? 'found' : 'MISSED'}: ${bug.name} (${bug.find}, ${took} s)${found ? `\n    ${first}` : `\n${stdout}${stderr}`}`,
    );
    // Kept for inspection if it runs alone.
    for (const [, left] of stdout.matchAll(/^the state folders and histories are in (.*)$/gm))
      rmSync(left, { recursive: true, force: true });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
console.log(`seed ${given.seed}; ${BUGS.length - given.from - missed} of ${BUGS.length - given.from} found`);
process.exit(missed > 0 ? 1 : 0);
