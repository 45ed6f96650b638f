// needs: nothing
// The command beside libraries of other versions.
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { installIn } from '../../../test/support/installed.js';
import { refusalOf } from '../lib/library.js';
import { newFolder, numalign } from './numalign.js';

/** What the command answers beside a library of this version; undefined: without one. */
function beside(version: string | undefined) {
  const packages = installIn(newFolder());
  const library = join(packages, 'numalign');
  if (version === undefined) rmSync(library, { recursive: true });
  else {
    const manifest = JSON.parse(readFileSync(join(library, 'package.json'), 'utf8'));
    writeFileSync(join(library, 'package.json'), JSON.stringify({ ...manifest, version }));
  }
  const program = [process.execPath, join(packages, '@numalign/cli/dist/main.cjs')] as const;
  return numalign(['status', '--state-dir', newFolder()], { program });
}

const [own] = /^\d+\.\d+/.exec(
  JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')).version,
)!;

describe('the command', () => {
  it('works with each library of its own release', async () => {
    expect(await beside(`${own}.99`)).toMatchObject({ code: 0, stderr: '' });
  });

  it('refuses a library of another release, and says what to install', async () => {
    const { code, stdout, stderr } = await beside('99.1.0');
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toBe(
      `numalign: this is @numalign/cli ${own}.0, which cannot use numalign 99.1.0: ` +
        `npm install @numalign/cli@${own} numalign@${own}, with --global for a global command [ERR_LIBRARY_VERSION]\n`,
    );
  });

  it('says what to install if there is no library', async () => {
    const { code, stderr } = await beside(undefined);
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(/^numalign: .* npm install @numalign\/cli@.*\[ERR_LIBRARY_MISSING\]\n$/),
    ]);
  });
});

describe('a release', () => {
  it.each([
    ['0.1.0', '0.1.0', undefined],
    ['0.1.0', '0.1.7', undefined],
    ['0.1.0', '0.10.0', 'ERR_LIBRARY_VERSION'],
    ['0.2.0', '0.1.9', 'ERR_LIBRARY_VERSION'],
    ['1.2.0', '0.2.0', 'ERR_LIBRARY_VERSION'],
    ['1.2.3', '1.2.0-next.1', undefined],
    ['1.2.3', undefined, 'ERR_LIBRARY_MISSING'],
  ])('of the command %s beside the library %s: %s', (command, library, code) => {
    expect(refusalOf(command, library)?.code).toBe(code);
  });
});
