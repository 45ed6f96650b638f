// needs: nothing
// The modules that tests in virtual machines load by path: no compiler checks those paths.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const guest = fileURLToPath(new URL('guest/', import.meta.url));
const root = fileURLToPath(new URL('../../', import.meta.url));
const texts = readdirSync(guest, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.mjs'))
  .map((name) => readFileSync(`${guest}${name}`, 'utf8'));
const modules = texts.flatMap((text) =>
  [...text.matchAll(/(\bpackages\/\w+\/)?\bdist\/([\w./-]+)\.js/g)].map(
    ([, of = '', name]) => `${of}lib/${name}`,
  ),
);

it.each([...new Set(modules)])('a module that guests load is there: %s', (name) => {
  expect(existsSync(`${root}${name}.ts`)).toBe(true);
});

it('guests load modules of the package', () => {
  expect(modules).toContain('lib/index');
});
