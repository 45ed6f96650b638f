// The man pages as man(1) finds and shows them.
import { spawnSync } from 'node:child_process';
import { cpSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { newFolder } from '../numalign.js';

const BUILT = fileURLToPath(new URL('../../dist/man', import.meta.url));

/** What man prints, and complains about; of a folder with the pages as npm installs them. */
function man(...args: string[]): { status: number | null; stdout: string; stderr: string } {
  const folder = newFolder();
  cpSync(BUILT, join(folder, 'man1'), { recursive: true });
  const env = { PATH: process.env.PATH, MANPATH: folder, MANWIDTH: '80', LC_ALL: 'C.UTF-8' };
  return spawnSync('man', args, { encoding: 'utf8', env });
}

describe('man', () => {
  it.each(readdirSync(BUILT))('shows %s without a warning', (name) => {
    const { status, stdout, stderr } = man('--warnings', name.replace(/\.1$/, ''));
    expect([status, stderr]).toEqual([0, '']);
    expect(stdout).toMatch(/^NAME$/m);
    // Code and tables stay as they are.
    const long = stdout
      .split('\n')
      .filter((line) => line.length > 80 && !/^ +(\$|numalign|\[) |\S {3}/.test(line));
    expect(long).toEqual([]);
  });

  it('finds the page of a command by its words', () => {
    expect(man('numalign', 'run').stdout).toMatch(/^ +numalign run --cpus <n> \[options\]/m);
  });
});
