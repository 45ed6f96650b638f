// needs: folders
// The budgets of rooms.mjs, in a tree of one room.
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { ROOT } from '../support/documents.js';
import { makeStateDir } from '../support/state-dir.js';

const ROOMS = `
export const HOUSES = { lib: [{ name: '.', lines: 100, purpose: '' }] };
export const JUDGES = {};
export const MACHINE_JUDGES = {};
`;

/** What the check says of a room of `lines` lines. */
function check(lines: number) {
  const folder = makeStateDir();
  for (const name of ['scripts', 'lib']) mkdirSync(join(folder, name), { recursive: true });
  copyFileSync(join(ROOT, 'scripts/check-rooms.mjs'), join(folder, 'scripts/check-rooms.mjs'));
  writeFileSync(join(folder, 'rooms.mjs'), ROOMS);
  writeFileSync(join(folder, 'lib/a.ts'), `// No code.\n${'f();\n'.repeat(lines)}`);
  const options = { cwd: folder, encoding: 'utf8' as const };
  const { status, stderr } = spawnSync(process.execPath, ['scripts/check-rooms.mjs'], options);
  return [status, stderr.trim()];
}

const SIZE = (lines: number) => `lib/. has ${lines} lines of code, and rooms.mjs allows 100`;

it.each([
  ['within its budget passes', 100, 0, ''],
  ['less than 3 % above it is a note', 102, 0, `note: ${SIZE(102)}`],
  ['3 % above it fails', 103, 1, `${SIZE(103)}: make it simpler, or raise the budget and say why there`],
])('a room %s', (_, lines, status, message) => {
  expect(check(lines)).toEqual([status, message]);
});
