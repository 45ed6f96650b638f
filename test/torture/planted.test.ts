// needs: agents
// Planted bugs replace texts of the sources. These texts go stale when the sources change, and the
// scripts that plant the bugs run rarely.
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { applyEdit } from '../support/planting.mjs';
import { BUGS as GUEST_BUGS } from '../vm/planted-bugs.mjs';
import { BUGS } from './planted-bugs.mjs';

const edits = [
  ...BUGS.flatMap(({ name, also = [], ...edit }) => [edit, ...also].map((each) => ({ name, ...each }))),
  ...GUEST_BUGS,
];

it.each(edits)('the source $file still has the text that a planted bug replaces: $name', (edit) => {
  const source = readFileSync(new URL(`../../${edit.file}`, import.meta.url), 'utf8');
  const planted = applyEdit(source, edit);
  expect(planted).toBeDefined();
  expect(planted).not.toBe(source);
});
