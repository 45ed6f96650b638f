// needs: agents
// The tests that judge mutants.
import { existsSync } from 'node:fs';
import { expect, it } from 'vitest';
import { JUDGES, MACHINE_JUDGES } from './judges.mjs';

const files = Object.values(JUDGES).flat();
const guestFiles = Object.values(MACHINE_JUDGES).flat();
const paths = [...files, ...guestFiles.map((name) => `test/vm/guest/${name}.test.mjs`)];

it.each([...new Set(paths)])('a judge of mutants exists: %s', (path) => {
  expect(existsSync(path)).toBe(true);
});
